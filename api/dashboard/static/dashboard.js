// Draws the overview's chart from the table beside it, and holds renewals back. All else works without JavaScript.
(() => {
  "use strict";

  const COLUMNS = [["Succeeded", 1, "--c2"], ["Skipped", 2, "--c1"], ["Failed", 3, "--c6"], ["Cancelled", 4, "--c4"]];
  const HEIGHT = 180;

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function read(table) {
    const rows = [...table.querySelectorAll("tbody tr")];
    const times = rows.map((row) => Number(row.dataset.at));
    return [times, ...COLUMNS.map(([, place]) => rows.map((row) => Number(row.cells[place].textContent)))];
  }

  // Bars on top of each other: each series is drawn with those before it added, the tallest first.
  function stacked(data) {
    const sums = data[0].map(() => 0);
    return [data[0], ...data.slice(1).map((values) => values.map((value, at) => (sums[at] += value)))];
  }

  function draw(figure) {
    const table = document.getElementById(figure.dataset.chart);
    if (!table || !window.uPlot) return;
    const data = read(table);
    if (!data.slice(1).some((values) => values.some(Boolean))) return;
    const tall = stacked(data);
    const places = COLUMNS.map((_, at) => at).reverse();
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const series = places.map((at) => ({
      label: COLUMNS[at][0],
      fill: colour(COLUMNS[at][2]),
      width: 0,
      points: { show: false },
      paths: uPlot.paths.bars({ size: [0.8, 40], align: 1 }),
      value: (_, __, ___, point) => (point == null ? "–" : data[at + 1][point]),
    }));
    figure.replaceChildren();
    new uPlot(
      {
        width: figure.clientWidth,
        height: HEIGHT,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        scales: { x: { range: (_, low, high) => [low, high + 1800] }, y: { range: (_, low, high) => [0, Math.max(1.08 * high, 1)] } },
        axes: [{ ...axis, values: [[3600, "{HH}:{mm}", "\n{MM}-{DD}", null, null, null, null, null, 0], [60, "{HH}:{mm}", null, null, null, null, null, null, 0]] }, { ...axis, size: 44, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5, 1e6] }],
        series: [{ value: "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...series],
      },
      [tall[0], ...places.map((at) => tall[at + 1])],
      figure,
    );
  }

  // A page does not renew itself under somebody's hands: while a table is unfolded, the keyboard is in it, or nobody looks.
  function isInUse() {
    const live = document.getElementById("live");
    return document.hidden || (live && (live.contains(document.activeElement) || live.querySelector("details[open]")));
  }

  document.addEventListener("htmx:before:request", (event) => {
    if (event.target.id === "live" && isInUse()) event.preventDefault();
  });

  const drawAll = () => document.querySelectorAll("figure[data-chart]").forEach(draw);
  document.addEventListener("DOMContentLoaded", drawAll);
  document.addEventListener("htmx:after:swap", drawAll);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(drawAll, 150); });
})();
