// A stage: a photo that fits the window, and circles of keypoints over it.

import { make } from "./plot.js";

const SPOT = 0.035;  // radius of the ring around the chosen keypoint, of the photo's longer side

export class Stage {
  constructor(element, onProblem) {
    this.element = element;
    this.picture = element.querySelector("img");
    this.overlay = element.querySelector("svg");
    this.onProblem = onProblem;
  }

  show(photo) {
    this.photo = photo;
    this.element.style.setProperty("--shape", photo.width / photo.height);
    this.overlay.setAttribute("viewBox", `-0.5 -0.5 ${photo.width} ${photo.height}`);
    this.picture.alt = `Photo ${photo.name}`;
    const source = `photos/${photo.number}`;
    if (this.picture.getAttribute("src") === source) return;
    this.picture.onerror = () => this.onProblem(source);
    this.picture.src = source;
  }

  // Circles of `points` ({id, x, y, scale}); the one with the id `chosen` stands out.
  draw(points, chosen) {
    const circles = points.filter(({ id }) => id !== chosen).map((point) => circleOf(point));
    const point = points.find(({ id }) => id === chosen);
    if (point) {
      const ring = Math.max(4 * point.scale, SPOT * Math.max(this.photo.width, this.photo.height));
      circles.push(
        make("circle", { cx: point.x, cy: point.y, r: ring, class: "halo" }),
        make("circle", { cx: point.x, cy: point.y, r: ring, class: "ring" }),
        circleOf(point, { class: "chosen" }),
      );
    }
    this.overlay.replaceChildren(...circles);
  }

  // Where in the photo, in its pixels, a pointer event happened.
  placeOf(event) {
    const box = this.overlay.getBoundingClientRect();
    return [
      ((event.clientX - box.left) / box.width) * this.photo.width - 0.5,
      ((event.clientY - box.top) / box.height) * this.photo.height - 0.5,
    ];
  }
}

function circleOf({ id, x, y, scale }, extra = {}) {
  return make("circle", { cx: x, cy: y, r: 2 * scale, "data-id": id, ...extra });
}
