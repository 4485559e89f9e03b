// The plot of an answer: scores by rank, the threshold, the bound of everything skipped.

const SVG = "http://www.w3.org/2000/svg";
const AREA = { left: 40, right: 470, top: 12, bottom: 205 };

export function make(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

export function drawPlot(svg, answer) {
  svg.replaceChildren();
  const { curve, hits, certificate } = answer;
  if (curve.length === 0) return;
  const scores = curve.map(([, score]) => score);
  const low = Math.min(...scores), high = Math.max(1, ...scores);
  const last = Math.max(10, certificate.entries);
  const x = (rank) => AREA.left + (Math.log(rank) / Math.log(last)) * (AREA.right - AREA.left);
  const y = (score) => AREA.bottom - ((score - low) / (high - low)) * (AREA.bottom - AREA.top);

  for (let rank = 1; rank <= last; rank *= 10) {
    svg.append(
      make("line", { class: "axis", x1: x(rank), x2: x(rank), y1: AREA.top, y2: AREA.bottom }),
      make("text", { x: x(rank), y: AREA.bottom + 14, "text-anchor": "middle" },
        rank.toLocaleString("en")),
    );
  }
  for (const score of [low, (low + high) / 2, high]) {
    svg.append(make("text", { x: AREA.left - 6, y: y(score) + 4, "text-anchor": "end" },
      score.toFixed(2)));
  }
  svg.append(make("text", { x: AREA.right, y: 235, "text-anchor": "end" }, "rank"));
  const points = curve.map(([rank, score]) => `${x(rank)},${y(score)}`).join(" ");
  svg.append(make("polyline", { class: "curve", points }));
  drawLevel(svg, "threshold", certificate.kth_score, y, "last patch shown", -4);
  drawLevel(svg, "bound", certificate.skipped_bound, y, "all others at most", 12);
  hits.forEach((hit, i) => {
    svg.append(make("circle", { class: "hit", cx: x(i + 1), cy: y(hit.score), r: 3.5 }));
  });
}

function drawLevel(svg, name, score, y, label, shift) {
  if (score === null) return;
  svg.append(
    make("line", { class: name, x1: AREA.left, x2: AREA.right, y1: y(score), y2: y(score) }),
    make("text", { x: AREA.right, y: y(score) + shift, "text-anchor": "end" },
      `${label}: ${score.toFixed(4)}`),
  );
}
