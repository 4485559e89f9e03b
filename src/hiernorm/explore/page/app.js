// The page: choose a photo, choose a keypoint, see its neighbours and the proof.

import { drawPlot, make } from "./plot.js";

const NEIGHBOURS = 12;
const byId = (id) => document.getElementById(id);
const state = { photos: [], photo: 0, keypoints: null, cursor: 0, asked: 0, wanted: 0 };

async function fetchJson(path) {
  const response = await fetch(path);
  const content = await response.json();
  if (!response.ok) throw new Error(content.error ?? response.statusText);
  return content;
}

async function guarded(work) {
  try {
    byId("problem").hidden = true;
    await work();
  } catch (error) {
    byId("problem").textContent = error.message;
    byId("problem").hidden = false;
  }
}

async function start() {
  const collection = await fetchJson("api/collection");
  state.photos = collection.photos;
  byId("title").textContent = collection.name;
  byId("about").textContent =
    `${collection.photos.length} photos, ${collection.entries.toLocaleString("en")} keypoints, ` +
    `model ${collection.model}`;
  byId("photos").replaceChildren(...collection.photos.map((photo) =>
    new Option(`${photo.name} (${photo.keypoints})`, photo.number)));
  if (collection.photos.length) await showPhoto(0);
}

async function showPhoto(number, key) {
  const photo = state.photos[number];
  const wanted = ++state.wanted;
  const keypoints = await fetchJson(`api/photos/${number}/keypoints`);
  if (wanted !== state.wanted) return;  // another photo has been chosen meanwhile
  Object.assign(state, { photo: number, keypoints, cursor: 0 });
  if (key !== undefined) state.cursor = Math.max(0, keypoints.id.indexOf(key));
  byId("photos").value = number;
  const picture = byId("picture");
  picture.width = photo.width;
  picture.height = photo.height;
  picture.alt = `Photo ${photo.name}`;
  picture.onerror = () => guarded(() => fetchJson(`photos/${number}`));
  picture.src = `photos/${number}`;
  byId("overlay").setAttribute("viewBox", `-0.5 -0.5 ${photo.width} ${photo.height}`);
  byId("shown").max = Math.max(50, keypoints.id.length);
  drawKeypoints();
}

function shownCount() {
  return Math.min(Number(byId("shown").value), state.keypoints.id.length);
}

function drawKeypoints() {
  const { id, x, y, scale } = state.keypoints;
  const count = shownCount();
  byId("shown-count").textContent = `${count} of ${id.length}`;
  const circles = [];
  for (let i = 0; i < id.length; i++) {
    if (i >= count && i !== state.cursor) continue;
    circles.push(make("circle", {
      cx: x[i], cy: y[i], r: 2 * scale[i], "data-id": id[i],
      ...(i === state.cursor ? { class: "chosen" } : {}),
    }));
  }
  byId("overlay").replaceChildren(...circles);
}

function nearestTo(px, py) {
  const { x, y } = state.keypoints;
  let best = -1, least = Infinity;
  for (let i = 0; i < shownCount(); i++) {
    const distance = (x[i] - px) ** 2 + (y[i] - py) ** 2;
    if (distance < least) [best, least] = [i, distance];
  }
  return best;
}

function moveCursor(dx, dy) {
  const { x, y } = state.keypoints;
  let best = -1, least = Infinity;
  for (let i = 0; i < shownCount(); i++) {
    const along = (x[i] - x[state.cursor]) * dx + (y[i] - y[state.cursor]) * dy;
    const across = Math.abs((x[i] - x[state.cursor]) * dy + (y[i] - y[state.cursor]) * dx);
    const cost = along + 2 * across;
    if (along > 1 && cost < least) [best, least] = [i, cost];
  }
  if (best >= 0) state.cursor = best;
  drawKeypoints();
}

async function search() {
  const key = state.keypoints.id[state.cursor];
  if (key === undefined) return;
  const asked = ++state.asked;
  const others = byId("others").checked ? 1 : 0;
  const answer = await fetchJson(`api/neighbours/${key}?k=${NEIGHBOURS}&others=${others}`);
  if (asked !== state.asked) return;  // a later question has been asked meanwhile
  showAnswer(answer);
}

function patchOf(key, alt) {
  const image = new Image(64, 64);
  image.src = `patches/${key}`;
  image.alt = alt;
  return image;
}

function showAnswer(answer) {
  byId("results").hidden = false;
  const own = state.photos[answer.photo].name;
  const about = document.createElement("span");
  about.textContent = `keypoint ${answer.query} of ${own}`;
  byId("question").replaceChildren(patchOf(answer.query, "The patch asked for"), about);
  byId("hits").replaceChildren(...answer.hits.map((hit) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.id = hit.id;
    button.title = `Show in ${hit.name}`;
    button.append(patchOf(hit.id, `Patch ${hit.id}`));
    for (const text of [hit.score.toFixed(4), hit.name.split("/").at(-1)]) {
      const span = document.createElement("span");
      span.textContent = text;
      button.append(span);
    }
    button.addEventListener("click", () => guarded(() => showPhoto(hit.photo, hit.id)));
    item.append(button);
    return item;
  }));
  showProof(answer);
  drawPlot(byId("plot"), answer);
}

function showProof({ certificate: proof, seconds }) {
  const number = (value) => value.toLocaleString("en");
  const bound = proof.skipped_bound === null ? "nothing was skipped"
    : `nothing skipped can exceed ${proof.skipped_bound.toFixed(6)}`;
  const kth = proof.kth_score === null ? "there are fewer entries than asked for"
    : `the last hit scores ${proof.kth_score.toFixed(6)}`;
  byId("proof").textContent =
    `${proof.exact ? "Exact" : "Not proved exact"}: ${bound}, ${kth}. ` +
    `${(seconds * 1e6).toFixed(0)} µs for ${number(proof.entries)} entries.`;
  const steps = [
    ["unread: in groups that could not win", Math.max(0, proof.total - proof.scanned)],
    ["by the major, or not asked for", proof.scanned - proof.sifted],
    ["by the codes of the minor", proof.sifted - proof.tightened],
    ["left: scored in full", proof.settled],
  ];
  byId("steps").replaceChildren(...steps.map(([name, count]) => {
    const row = document.createElement("tr");
    const meter = document.createElement("meter");
    meter.max = Math.max(1, proof.total);
    meter.value = count;
    for (const content of [name, number(count), meter]) {
      const cell = document.createElement(row.children.length ? "td" : "th");
      cell.append(content);
      row.append(cell);
    }
    return row;
  }));
  byId("digest").textContent = proof.digest;
}

function placeOf(event) {
  const box = byId("overlay").getBoundingClientRect();
  const photo = state.photos[state.photo];
  return [
    ((event.clientX - box.left) / box.width) * photo.width - 0.5,
    ((event.clientY - box.top) / box.height) * photo.height - 0.5,
  ];
}

byId("photos").addEventListener("change", (event) =>
  guarded(() => showPhoto(Number(event.target.value))));
byId("previous").addEventListener("click", () =>
  guarded(() => showPhoto((state.photo + state.photos.length - 1) % state.photos.length)));
byId("next").addEventListener("click", () =>
  guarded(() => showPhoto((state.photo + 1) % state.photos.length)));
byId("shown").addEventListener("input", drawKeypoints);
byId("others").addEventListener("change", () => {
  if (!byId("results").hidden) guarded(search);
});
byId("stage").addEventListener("click", (event) => {
  const found = nearestTo(...placeOf(event));
  if (found < 0) return;
  state.cursor = found;
  drawKeypoints();
  guarded(search);
});
byId("stage").addEventListener("keydown", (event) => {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.key in moves) moveCursor(...moves[event.key]);
  else if (event.key === "Enter" || event.key === " ") guarded(search);
  else return;
  event.preventDefault();
});

guarded(start);
