// The answer to a search: the patches that were found, and why no nearer one was missed.

import { drawPlot } from "./plot.js";

const byId = (id) => document.getElementById(id);
const number = (value) => value.toLocaleString("en");

export function create(name, properties = {}, ...content) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...content);
  return element;
}

export const shortName = (name) => name.split("/").slice(-2).join("/");

function patchOf(key, alt) {
  return create("img", { src: `patches/${key}`, alt, width: 64, height: 64 });
}

export function showResults(answer, choose) {
  byId("results").hidden = false;
  byId("question").replaceChildren(
    patchOf(answer.query, "The patch asked for"), create("span", {}, "yours"));
  byId("hits").replaceChildren(...answer.hits.map((hit, rank) => {
    const button = create("button", { type: "button", title: `Show in ${hit.name}` },
      patchOf(hit.id, `Patch ${rank + 1}`),
      create("span", {}, hit.score.toFixed(3)),
      create("span", { className: "quiet name" }, create("bdi", {}, hit.name.split("/").at(-1))));
    button.dataset.id = hit.id;
    button.addEventListener("click", () => choose(rank));
    return create("li", {}, button);
  }));
  const { others, certificate } = answer;
  byId("no-hits").hidden = answer.hits.length > 0;
  byId("no-hits").textContent = others
    ? "No other photo has a keypoint. Untick “other photos only” to search this one."
    : "The collection has no other keypoint.";
  byId("proof").textContent = explain(certificate, answer.hits.length, answer.seconds);
  byId("steps").replaceChildren(...steps(certificate).map(([name, count]) => {
    const meter = create("meter", { max: Math.max(1, certificate.total), value: count });
    return create("tr", {},
      create("th", { scope: "row" }, name), create("td", {}, number(count)),
      create("td", {}, meter));
  }));
  byId("digest").textContent = certificate.digest;
  drawPlot(byId("plot"), answer);
}

function explain(proof, found, seconds) {
  const time = `The search took ${(seconds * 1000).toFixed(2)} ms.`;
  if (!proof.exact) return `Not proved: a nearer patch may have been missed. ${time}`;
  if (proof.skipped_bound === null || proof.kth_score === null) {
    return `Exact: every one of the ${number(proof.entries)} patches was compared in full. ${time}`;
  }
  return `Exact: these are the ${found} nearest of ${number(proof.entries)} patches, as if each ` +
    `had been compared in full. Only ${number(proof.settled)} were. All others provably score ` +
    `${proof.skipped_bound.toFixed(4)} at most; the last patch shown scores ` +
    `${proof.kth_score.toFixed(4)}. ${time}`;
}

function steps(proof) {
  return [
    ["Not read: its whole group points elsewhere", Math.max(0, proof.total - proof.scanned)],
    ["Ruled out by a coarse copy of its leading dimensions, or left out of the search",
      proof.scanned - proof.sifted],
    ["Ruled out by a coarse copy of the other dimensions", proof.sifted - proof.tightened],
    ["Ruled out by its exact leading dimensions", Math.max(0, proof.tightened - proof.settled)],
    ["Compared in full", proof.settled],
  ];
}
