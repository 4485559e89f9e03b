// The page: choose a photo, choose a keypoint, see its neighbours and the proof.

import { create, shortName, showResults } from "./results.js";
import { fetchJson } from "./server.js";
import { Stage } from "./stage.js";

const NEIGHBOURS = 12;
const byId = (id) => document.getElementById(id);
const state = { photos: [], photo: 0, points: [], cursor: 0, answer: null, asked: 0, wanted: 0 };
const report = (source) => guarded(() => fetchJson(source));
const stage = new Stage(byId("stage"), report);
const matchStage = new Stage(byId("match-stage"), report);

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
  document.title = `${collection.name} · hiernorm explore`;
  byId("title").textContent = collection.name;
  const count = collection.photos.length;
  byId("about").textContent =
    `${count} ${count === 1 ? "photo" : "photos"}, ` +
    `${collection.entries.toLocaleString("en")} keypoints, model ${collection.model}`;
  if (count === 0) {
    byId("empty").replaceChildren("This collection has no photos yet. Add some: ",
      create("code", {}, `hiernorm describe PHOTOS -o ${collection.name}`));
    byId("empty").hidden = false;
    return;
  }
  byId("content").hidden = false;
  byId("photos").replaceChildren(...collection.photos.map((photo) =>
    new Option(`${photo.name} (${photo.keypoints})`, photo.number)));
  byId("thumbnails").replaceChildren(...collection.photos.map(thumbnailOf));
  await showPhoto(collection.start?.photo ?? 0, collection.start?.id);
}

function thumbnailOf(photo) {
  const image = create("img", { loading: "lazy", alt: "", src: `thumbnails/${photo.number}` });
  const button = create("button", { type: "button", title: photo.name }, image);
  button.setAttribute("aria-label", `Photo ${photo.name}`);
  button.addEventListener("click", () => guarded(() => showPhoto(photo.number)));
  return button;
}

async function showPhoto(number, key) {
  const wanted = ++state.wanted;
  const { id, x, y, scale } = await fetchJson(`api/photos/${number}/keypoints`);
  if (wanted !== state.wanted) return;  // another photo has been chosen meanwhile
  const points = id.map((_, i) => ({ id: id[i], x: x[i], y: y[i], scale: scale[i] }));
  const cursor = key === undefined ? 0 : Math.max(0, id.indexOf(key));
  Object.assign(state, { photo: number, points, cursor });
  byId("photos").value = number;
  markThumbnail(number);
  stage.show(state.photos[number]);
  byId("own-name").textContent = shortName(state.photos[number].name);
  byId("shown").max = Math.max(50, points.length);
  drawKeypoints();
  await search();
}

function markThumbnail(number) {
  [...byId("thumbnails").children].forEach((button, i) => {
    button.setAttribute("aria-current", i === number);
    // Not scrollIntoView: that would scroll the page too.
    if (i === number) {
      const strip = button.parentElement;
      strip.scrollLeft = button.offsetLeft - (strip.clientWidth - button.offsetWidth) / 2;
    }
  });
}

function shownCount() {
  return Math.min(Number(byId("shown").value), state.points.length);
}

function drawKeypoints() {
  const count = shownCount();
  byId("shown-count").textContent = `${count} of ${state.points.length}`;
  stage.draw(state.points.filter((_, i) => i < count || i === state.cursor),
    state.points[state.cursor]?.id);
}

// The shown keypoint of the least cost; infinite costs are none.
function leastBy(cost) {
  let best = -1, least = Infinity;
  state.points.slice(0, shownCount()).forEach((point, i) => {
    if (cost(point) < least) [best, least] = [i, cost(point)];
  });
  return best;
}

function nearestTo(px, py) {
  return leastBy(({ x, y }) => (x - px) ** 2 + (y - py) ** 2);
}

function moveCursor(dx, dy) {
  const from = state.points[state.cursor];
  const best = leastBy(({ x, y }) => {
    const along = (x - from.x) * dx + (y - from.y) * dy;
    const across = Math.abs((x - from.x) * dy + (y - from.y) * dx);
    return along > 1 ? along + 2 * across : Infinity;
  });
  if (best >= 0) state.cursor = best;
  drawKeypoints();
}

async function search() {
  const asked = ++state.asked;
  const point = state.points[state.cursor];
  byId("results").hidden = byId("match").hidden = point === undefined;
  if (point === undefined) throw new Error("No keypoint was found in this photo: choose another.");
  const others = byId("others").checked;
  const path = `api/neighbours/${point.id}?k=${NEIGHBOURS}&others=${others ? 1 : 0}`;
  const answer = await fetchJson(path);
  if (asked !== state.asked) return;  // a later question has been asked meanwhile
  state.answer = { ...answer, others };
  showResults(state.answer, (rank) => { showHit(rank); scrollToMatch(); });
  showHit(0);
}

// The photo of a hit, beside that of the question.
function showHit(rank) {
  const hit = state.answer.hits[rank];
  byId("match").hidden = hit === undefined;
  if (hit === undefined) return;
  matchStage.show(state.photos[hit.photo]);
  matchStage.draw([hit], hit.id);
  byId("match-title").textContent = rank === 0 ? "Nearest patch" : `Patch ${rank + 1}`;
  byId("match-name").textContent = `${shortName(hit.name)}, score ${hit.score.toFixed(3)}`;
  byId("follow").onclick = () => guarded(() => showPhoto(hit.photo, hit.id));
  byId("hits").querySelectorAll("button").forEach((button, i) =>
    button.setAttribute("aria-current", i === rank));
}

// On a phone the photos lie below each other: what was found comes into view.
function scrollToMatch() {
  const match = byId("match");
  const target = match.hidden ? byId("results") : match;
  const { top, bottom } = target.getBoundingClientRect();
  if (top < 0 || bottom > window.innerHeight) {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    target.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
  }
}

async function searchAndShow() {
  await search();
  if (matchMedia("(max-width: 60rem)").matches) scrollToMatch();
}

const step = (by) => guarded(() =>
  showPhoto((state.photo + by + state.photos.length) % state.photos.length));
byId("photos").addEventListener("change", (event) =>
  guarded(() => showPhoto(Number(event.target.value))));
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("shown").addEventListener("input", drawKeypoints);
byId("others").addEventListener("change", () => guarded(search));
byId("stage").addEventListener("click", (event) => {
  const found = nearestTo(...stage.placeOf(event));
  if (found < 0) return;
  state.cursor = found;
  drawKeypoints();
  guarded(searchAndShow);
});
byId("stage").addEventListener("keydown", (event) => {
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (event.key in moves && state.points.length) moveCursor(...moves[event.key]);
  else if (event.key === "Enter" || event.key === " ") guarded(searchAndShow);
  else return;
  event.preventDefault();
});

guarded(start);
