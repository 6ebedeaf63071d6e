#include "draw/page_parts.h"

namespace kiln::draw {

// The data, and boxes and links with their places for the boxes that are open: the same as
// layout.cc and svg.cc do, here after each click.
const std::string_view kPageScene = R"js(
'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const sizes = data.sizes;
// The columns of a node.
const NAME = 0, OP = 1, SHAPE = 2, LINES = 3, WIDTH = 4, HEIGHT = 5, ORIGIN = 6, TEXT = 7,
      CALLED = 8, WORK = 9;
const kMostOpen = 20000;  // nodes, where all boxes open at once

for (const graph of data.graphs) {
  graph.callers = [];  // of groups: the first node that opens to it
  graph.open = new Set();  // paths of boxes
  graph.byName = new Map();
  graph.nanoseconds = 0;
  graph.groups.forEach((group, g) => {
    group.rank = [];
    group.ranks.forEach((items, r) => items.forEach(item => { group.rank[item] = r; }));
    group.nodes.forEach((node, n) => {
      node[LINES] = node[LINES].split('\n');
      node[CALLED].forEach(c => { graph.callers[c] ??= [g, n]; });
      graph.byName.set(node[NAME], [g, n]);
      if (node[WORK]) graph.nanoseconds += node[WORK][1];
    });
  });
}

// The middles of items: nearest to `wanted` in their order, without overlaps.
function separate(items, widths, wanted, boxes, x) {
  const pools = [], offsets = [];
  items.forEach((item, k) => {
    const before = items[k - 1];
    offsets[k] = k ? offsets[k - 1] + (widths[before] + widths[item]) / 2 + sizes.boxGap : 0;
    const weight = item < boxes ? 1 : 4;
    let pool = {sum: (wanted[item] - offsets[k]) * weight, weight, count: 1};
    for (let last; (last = pools[pools.length - 1]) && last.sum / last.weight >= pool.sum / pool.weight;) {
      pool = {sum: pool.sum + last.sum, weight: pool.weight + last.weight,
              count: pool.count + last.count};
      pools.pop();
    }
    pools.push(pool);
  });
  let k = 0;
  for (const pool of pools) {
    for (let i = 0; i < pool.count; ++i, ++k) x[items[k]] = pool.sum / pool.weight + offsets[k];
  }
}

function place(group, boxes) {
  const widths = group.x.map((_, item) => item < boxes.length ? boxes[item][0] : sizes.bendWidth);
  const placed = {x: group.x.slice(), top: [], bottom: []};
  let left = Infinity, right = -Infinity, y = 0;
  for (const items of group.ranks) {
    separate(items, widths, group.x, boxes.length, placed.x);
    let height = 0;
    for (const item of items) {
      if (item < boxes.length) height = Math.max(height, boxes[item][1]);
      left = Math.min(left, placed.x[item] - widths[item] / 2);
      right = Math.max(right, placed.x[item] + widths[item] / 2);
    }
    placed.top.push(y);
    placed.bottom.push(y + height);
    y += height + sizes.rankGap;
  }
  placed.x = placed.x.map(x => x - left);
  placed.width = right - left;
  placed.height = y - sizes.rankGap;
  return placed;
}

const headerOf = node => sizes.padding + sizes.line * node[LINES].length;

// A group with the sizes of what is open in it. `path` is that of the group: '', '/3:0', '/3:0/1:0'.
function measure(graph, g, path) {
  const group = graph.groups[g], inside = new Map();
  const boxes = group.nodes.map((node, n) => {
    if (!node[CALLED].length || !graph.open.has(`${path}/${n}`)) return [node[WIDTH], node[HEIGHT]];
    const parts = node[CALLED].map((c, k) => measure(graph, c, `${path}/${n}:${k}`));
    inside.set(n, parts);
    const width = parts.reduce((sum, p) => sum + p.placed.width + sizes.padding, sizes.padding);
    const height = Math.max(...parts.map(p => p.placed.height));
    return [Math.max(node[WIDTH], width), headerOf(node) + height + 2 * sizes.padding + sizes.smallFont];
  });
  return {g, path, boxes, inside, placed: place(group, boxes)};
}

// Appends the boxes and links of a sized group to the scene.
function emit(graph, scene, sized, left, top) {
  const group = graph.groups[sized.g], placed = sized.placed, boxes = [];
  group.nodes.forEach((node, n) => {
    const [w, h] = sized.boxes[n], r = group.rank[n];
    const box = {
      node, g: sized.g, n, path: `${sized.path}/${n}`, w, h, open: sized.inside.has(n),
      root: n === group.root, used: n === group.root, x: left + placed.x[n] - w / 2,
      y: top + placed.top[r] + (placed.bottom[r] - placed.top[r] - h) / 2,
    };
    boxes.push(box);
    scene.boxes.push(box);
    let at = box.x + sizes.padding;
    for (const part of sized.inside.get(n) ?? []) {
      emit(graph, scene, part, at, box.y + headerOf(node) + sizes.padding);
      at += part.placed.width + sizes.padding;
    }
  });
  let bend = boxes.length;
  for (let k = 0; k < group.links.length; k += 4) {
    const from = boxes[group.links[k]], to = boxes[group.links[k + 1]];
    const bends = group.links[k + 2], control = group.links[k + 3] === 1;
    const first = group.rank[from.n], last = group.rank[to.n];
    const far = first + bends + 1 !== last;
    const x0 = from.x + from.w / 2, x1 = to.x + to.w / 2, y0 = from.y + from.h;
    // Triples: x, and the upper and the lower end of a vertical piece; curves are between them.
    const stops = [x0, y0, far ? y0 : top + placed.bottom[first]];
    for (let b = 1; b <= bends; ++b, ++bend) {
      stops.push(left + placed.x[bend], top + placed.top[first + b], top + placed.bottom[first + b]);
    }
    stops.push(x1, far ? to.y : top + placed.top[last], to.y);
    from.used = true;
    const xs = stops.filter((_, i) => i % 3 === 0);
    scene.links.push({from, to, stops, far, control, left: Math.min(...xs), right: Math.max(...xs),
                      top: y0, bottom: to.y});
  }
}

// What is drawn of a graph: boxes, those that contain others first, and links.
function sceneOf(graph) {
  const sized = measure(graph, graph.entry, '');
  const scene = {boxes: [], links: [], width: sized.placed.width, height: sized.placed.height};
  emit(graph, scene, sized, 0, 0);
  scene.byPath = new Map(scene.boxes.map(box => [box.path, box]));
  return scene;
}

// The path of a group, whose boxes it opens.
function openTo(graph, g) {
  if (g === graph.entry) return '';
  const [caller, n] = graph.callers[g];
  const path = `${openTo(graph, caller)}/${n}`;
  graph.open.add(path);
  return `${path}:${graph.groups[caller].nodes[n][CALLED].indexOf(g)}`;
}

function openAll(graph) {
  let count = graph.groups[graph.entry].nodes.length;
  const queue = [[graph.entry, '']];
  for (let next; (next = queue.shift());) {
    graph.groups[next[0]].nodes.forEach((node, n) => {
      const more = node[CALLED].reduce((sum, c) => sum + graph.groups[c].nodes.length, 0);
      if (!more || count + more > kMostOpen) return;
      count += more;
      graph.open.add(`${next[1]}/${n}`);
      node[CALLED].forEach((c, k) => queue.push([c, `${next[1]}/${n}:${k}`]));
    });
  }
}
)js";

}  // namespace kiln::draw
