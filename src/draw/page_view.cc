#include "draw/page_parts.h"

namespace kiln::draw {

// The canvas, which draws what is in view in as much detail as the scale lets see; the panel; the
// sheets of passes and text. `kiln` is for tests.
const std::string_view kPageView = R"js(
const $ = id => document.getElementById(id);
const canvas = $('canvas'), context = canvas.getContext('2d'), panel = $('panel'), sheet = $('sheet');
let graph = data.graphs[0], scene, selected = null, matches = new Set(), wanted = false;
let firstPaint = 0, lastDraw = 0, lastSearch = 0;
// Scales from which on there are texts, frames of boxes, and links.
const kTextScale = 0.4, kFrameScale = 0.1, kLinkScale = 0.02;
const kMostRows = 300, kMostShape = 32;
const kFont = 'ui-monospace, Menlo, "DejaVu Sans Mono", monospace';

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}
const timeText = ns => ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms` : `${(ns / 1e3).toPrecision(3)} us`;
const shapeOf = node => data.shapes[node[SHAPE]];
// Without layouts.
function shortShape(node) {
  const text = shapeOf(node).replace(/\{[^}]*\}/g, '');
  return text.length > kMostShape ? `${text.slice(0, kMostShape)}...` : text;
}

// ---- the canvas

function redraw() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    const start = performance.now();
    draw();
    lastDraw = performance.now() - start;
    firstPaint ||= performance.now();
  });
}

function drawLink(link, has_arrow) {
  const s = link.stops;
  context.beginPath();
  context.moveTo(s[0], s[1]);
  context.lineTo(s[0], s[2]);
  for (let i = 3; i < s.length; i += 3) {
    const middle = (s[i - 1] + s[i + 1]) / 2;
    context.bezierCurveTo(s[i - 3], middle, s[i], middle, s[i], s[i + 1]);
    context.lineTo(s[i], s[i + 2]);
  }
  const near = selected && (link.from.path === selected || link.to.path === selected);
  context.lineWidth = near ? 2.5 : 1;
  context.strokeStyle = near ? '#d22' : link.far ? '#ccd' : '#778';
  context.setLineDash(link.control ? [2, 3] : link.far ? [6, 4] : []);
  context.stroke();
  if (!has_arrow) return;
  const x = s[s.length - 3], y = s[s.length - 1];
  context.fillStyle = context.strokeStyle;
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x - 3.5, y - 7);
  context.lineTo(x + 3.5, y - 7);
  context.fill();
}

function drawTexts(box) {
  context.fillStyle = '#112';
  box.node[LINES].forEach((text, k) => {
    context.font = `${k ? '' : 'bold '}${sizes.font}px ${kFont}`;
    context.fillText(text, box.x + sizes.padding, box.y + sizes.padding - 3 + sizes.line * (k + 1));
  });
  if (box.node[CALLED].length) {
    context.font = '11px sans-serif';
    context.fillText(box.open ? '\u25be' : '\u25b8', box.x + box.w - 12, box.y + 12);
  }
}

function drawBox(box, scale) {
  const found = matches.has(box.node);
  context.fillStyle = box.open ? '#f7f7f7' : data.ops[box.node[OP]][1];
  if (scale < kFrameScale) {  // dots
    if (box.path === selected || found) context.fillStyle = box.path === selected ? '#d22' : '#e80';
    const least = (found ? 4 : 1.5) / scale;
    return context.fillRect(box.x, box.y, Math.max(box.w, least), Math.max(box.h, least));
  }
  context.fillRect(box.x, box.y, box.w, box.h);
  context.lineWidth = box.path === selected ? 4 : found ? 3 : box.root ? 2 : 1;
  context.strokeStyle = box.path === selected ? '#d22' : found ? '#e80' : '#667';
  context.strokeRect(box.x, box.y, box.w, box.h);
  if (box.node[WORK] && graph.nanoseconds) {  // the part of the time, as a bar
    context.fillStyle = '#c33';
    context.fillRect(box.x, box.y + box.h - 3, box.w * box.node[WORK][1] / graph.nanoseconds, 3);
  }
  if (scale >= kTextScale) drawTexts(box);
}

function draw() {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== width * ratio || canvas.height !== height * ratio) {
    canvas.width = width * ratio;
    canvas.height = height * ratio;
  }
  const {x, y, scale} = graph.view;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.setTransform(ratio * scale, 0, 0, ratio * scale, -x * scale * ratio, -y * scale * ratio);
  const right = x + width / scale, bottom = y + height / scale;
  const boxes = scene.boxes.filter(
      b => b.x <= right && b.y - 20 <= bottom && b.x + b.w >= x && b.y + b.h + 20 >= y);
  for (const box of boxes) drawBox(box, scale);
  if (scale < kLinkScale) return;
  for (const l of scene.links) {
    if (l.left <= right && l.right >= x && l.top <= bottom && l.bottom >= y) drawLink(l, scale >= kTextScale);
  }
  context.setLineDash([]);
  if (scale < kTextScale) return;
  context.font = `${sizes.smallFont}px ${kFont}`;
  context.textAlign = 'center';
  for (const box of boxes) {
    if (!box.used) continue;
    const text = shortShape(box.node), middle = box.x + box.w / 2;
    context.lineWidth = 3;
    context.strokeStyle = '#fff';
    context.strokeText(text, middle, box.y + box.h + sizes.smallFont + 2);
    context.fillStyle = '#446';
    context.fillText(text, middle, box.y + box.h + sizes.smallFont + 2);
  }
  context.textAlign = 'start';
}

function fit() {
  const scale = Math.min(canvas.clientWidth / (scene.width + 40), canvas.clientHeight / (scene.height + 40), 1.5);
  graph.view = {scale, x: scene.width / 2 - canvas.clientWidth / scale / 2,
                y: scene.height / 2 - canvas.clientHeight / scale / 2};
  redraw();
}

function zoom(factor, px, py) {
  const view = graph.view, scale = Math.min(Math.max(view.scale * factor, 0.001), 8);
  view.x += px / view.scale - px / scale;
  view.y += py / view.scale - py / scale;
  view.scale = scale;
  redraw();
}

// The innermost box at a place of the canvas.
function boxAt(px, py) {
  const x = graph.view.x + px / graph.view.scale, y = graph.view.y + py / graph.view.scale;
  return scene.boxes.findLast(b => x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h);
}

// Opens or closes a box, which stays where it is.
function toggle(box) {
  if (!box.node[CALLED].length) return;
  if (!graph.open.delete(box.path)) graph.open.add(box.path);
  scene = sceneOf(graph);
  const now = scene.byPath.get(box.path);
  graph.view.x += now.x - box.x;
  graph.view.y += now.y - box.y;
  redraw();
}

canvas.addEventListener('wheel', event => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
}, {passive: false});
canvas.addEventListener('pointerdown', event => {
  canvas.setPointerCapture(event.pointerId);
  let moved = 0;
  const move = e => {
    moved += Math.abs(e.movementX) + Math.abs(e.movementY);
    graph.view.x -= e.movementX / graph.view.scale;
    graph.view.y -= e.movementY / graph.view.scale;
    redraw();
  };
  const up = e => {
    canvas.removeEventListener('pointermove', move);
    if (moved > 4) return;
    const box = boxAt(e.offsetX, e.offsetY);
    if (!box) return select(null);
    select(box);
    const x = graph.view.x + e.offsetX / graph.view.scale, y = graph.view.y + e.offsetY / graph.view.scale;
    if (x > box.x + box.w - 18 && y < box.y + 18) toggle(box);
  };
  canvas.addEventListener('pointermove', move);
  canvas.addEventListener('pointerup', up, {once: true});
});
canvas.addEventListener('dblclick', event => {
  const box = boxAt(event.offsetX, event.offsetY);
  if (box) toggle(box);
});

// ---- the panel

// Shows a node of the graph in the middle, in boxes that open for it.
function goTo(g, n) {
  const path = `${openTo(graph, g)}/${n}`;
  if (!scene.byPath.has(path)) scene = sceneOf(graph);
  showTab(graph);
  const box = scene.byPath.get(path), scale = Math.max(graph.view.scale, 0.8);
  graph.view = {scale, x: box.x + box.w / 2 - canvas.clientWidth / scale / 2,
                y: box.y + Math.min(box.h, 60) / 2 - canvas.clientHeight / scale / 2};
  select(box);
}

function rowOf(g, n) {
  const node = graph.groups[g].nodes[n], work = node[WORK];
  const row = element('div', {className: 'row mono', title: node[TEXT], onclick: () => goTo(g, n)},
    `${work ? `${timeText(work[1])}  ` : ''}${data.ops[node[OP]][0]}  ${node[NAME]}  ${shapeOf(node)}`);
  row.style.borderColor = data.ops[node[OP]][1];
  return row;
}

function neighbours(box, from, to) {
  const {g} = box, group = graph.groups[g], rows = [];
  for (let k = 0; k < group.links.length && rows.length < kMostRows; k += 4) {
    if (group.links[k + to] === box.n) rows.push(rowOf(g, group.links[k + from]));
  }
  return rows;
}

function select(box) {
  selected = box?.path ?? null;
  panel.replaceChildren();
  redraw();
  if (!box) return showRows();
  const node = box.node, work = node[WORK];
  panel.append(element('h3', {}, node[NAME]), element('div', {className: 'mono'}, shapeOf(node)));
  if (node[ORIGIN]) panel.append(element('div', {className: 'mono'}, node[ORIGIN]));
  if (work) {
    const share = graph.nanoseconds ? ` (${(100 * work[1] / graph.nanoseconds).toFixed(1)} %)` : '';
    const rate = amount => `${(amount / Math.max(work[1], 1)).toPrecision(3)}`;
    panel.append(element('p', {}, `${timeText(work[1])}${share}, ${work[0]} runs, ` +
      `${work[2]} bytes (${rate(work[2])} GB/s), ${work[3]} flops (${rate(work[3])} GFLOP/s)`));
  }
  panel.append(element('pre', {}, node[TEXT]));
  if (node[CALLED].length) {
    panel.append(element('button', {onclick: () => toggle(scene.byPath.get(box.path))}, 'open or close'));
  }
  panel.append(element('h4', {}, 'operands'), ...neighbours(box, 0, 1),
               element('h4', {}, 'users'), ...neighbours(box, 1, 0));
}

// Results of the search, or else the nodes with the most time.
function showRows() {
  const query = $('search').value.toLowerCase().split(/\s+/).filter(Boolean), rows = [];
  graph.groups.forEach((group, g) => group.nodes.forEach((node, n) => {
    if (!query.length) {
      if (node[WORK]) rows.push([g, n, node]);
      return;
    }
    node.text ??= `${data.ops[node[OP]][0]} ${node[NAME]} ${shapeOf(node)} ${node[ORIGIN]}`.toLowerCase();
    if (query.every(part => node.text.includes(part))) rows.push([g, n, node]);
  }));
  if (!query.length) rows.sort((a, b) => b[2][WORK][1] - a[2][WORK][1]);
  matches = new Set(query.length ? rows.map(row => row[2]) : []);
  $('found').textContent = query.length ? `${rows.length} found` : '';
  panel.replaceChildren(...rows.slice(0, kMostRows).map(([g, n]) => rowOf(g, n)));
  redraw();
  return rows;
}

let turn = 0;
$('search').addEventListener('input', () => {
  const start = performance.now();
  selected = null;
  turn = 0;
  showRows();
  lastSearch = performance.now() - start;
});
$('search').addEventListener('keydown', event => {
  if (event.key !== 'Enter') return;
  const rows = showRows();
  if (rows.length) goTo(...rows[turn++ % rows.length]);
});

// ---- the sheets

// HLO text with links at names of the graph.
function linked(text) {
  return text.split(/(%[\w.-]+)/).map(part => {
    const place = part[0] === '%' && graph.byName.get(part.slice(1));
    return place ? element('a', {onclick: () => goTo(...place)}, part) : part;
  });
}

function textSheet() {
  const pre = element('pre', {});
  graph.groups.forEach((group, g) => {
    pre.append(`${g === graph.entry ? 'ENTRY ' : ''}${group.name} {\n`);
    group.nodes.forEach((node, n) => {
      pre.append('  ', n === group.root ? 'ROOT ' : '', ...linked(node[TEXT].trim()), '\n');
    });
    pre.append('}\n\n');
  });
  return pre;
}

function changesOf(pass) {
  const list = (name, sign, className) => !pass[name]?.count ? '' : element('div', {},
    element('h4', {}, `${name}: ${pass[name].count}`),
    ...pass[name].lines.map(line => element('div', {className: `mono ${className}`}, `${sign} ${line}`)));
  const changed = !pass.changed?.count ? '' : element('div', {},
    element('h4', {}, `changed: ${pass.changed.count}`),
    ...pass.changed.lines.flatMap(([before, after]) => [
      element('div', {className: 'mono removed'}, `- ${before}`),
      element('div', {className: 'mono added'}, `+ ${after}`)]));
  const text = pass.text ? element('details', {}, element('summary', {}, 'the module behind it'),
                                   element('pre', {}, pass.text)) : '';
  return [list('added', '+', 'added'), list('removed', '-', 'removed'), changed, text];
}

function passesSheet() {
  const table = element('table', {}, element('tr', {}, ...[
    '', 'pass', 'instructions', 'added', 'removed', 'changed', 'ops'].map(t => element('th', {}, t))));
  data.passes.forEach((pass, k) => {
    const cells = [k, pass.pass, pass.instructions];
    if (pass.is_changed) {
      cells.push(pass.added.count, pass.removed.count, pass.changed.count,
                 pass.ops.map(([op, before, after]) => `${op} ${before} \u2192 ${after}`).join(', '));
    }
    const opens = pass.is_changed || pass.text;
    const row = element('tr', {className: opens ? 'pass' : 'same'},
                        ...cells.map(cell => element('td', {}, `${cell}`)));
    table.append(row);
    if (!opens) return;
    const cell = element('td', {colSpan: 7}), detail = element('tr', {hidden: true}, cell);
    table.append(detail);
    row.onclick = () => {
      if (!cell.hasChildNodes()) cell.append(...changesOf(pass));
      detail.hidden = !detail.hidden;
    };
  });
  return table;
}

const tabs = data.graphs.map(g => [g.name, g]);
if (data.passes.length) tabs.push(['passes', passesSheet]);
tabs.push(['text', textSheet]);

// A graph, or a function that makes a sheet.
function showTab(tab) {
  [...$('tabs').children].forEach((button, k) => button.classList.toggle('on', tabs[k][1] === tab));
  const is_graph = typeof tab !== 'function';
  canvas.hidden = !is_graph;
  sheet.hidden = is_graph;
  if (!is_graph) return sheet.replaceChildren(tab());
  if (graph !== tab || !scene) {
    graph = tab;
    scene = sceneOf(graph);
    selected = null;
    showRows();
  }
  if (!graph.view) {
    fit();
    // Of a large graph, the beginning in a legible size.
    if (graph.view.scale < 0.25) {
      const box = scene.byPath.get(`/${graph.groups[graph.entry].ranks[0].find(item => item < graph.groups[graph.entry].nodes.length) ?? 0}`);
      graph.view = {scale: 0.7, x: box.x + box.w / 2 - canvas.clientWidth / 1.4, y: -40};
    }
  }
  redraw();
}

$('title').textContent = data.title;
$('tabs').append(...tabs.map(([name, tab]) => element('button', {onclick: () => showTab(tab)}, name)));
$('fit').onclick = fit;
$('open').onclick = () => { openAll(graph); scene = sceneOf(graph); fit(); };
$('close').onclick = () => { graph.open.clear(); scene = sceneOf(graph); fit(); };
addEventListener('resize', redraw);
addEventListener('keydown', event => {
  if (event.target.tagName === 'INPUT') {
    if (event.key === 'Escape') event.target.blur();
  } else if (event.key === '/') {
    event.preventDefault();
    $('search').focus();
  } else if (event.key === 'f') {
    fit();
  }
});
showTab(graph);

window.kiln = {
  state: () => ({
    graph: graph.name, boxes: scene.boxes.length, links: scene.links.length,
    open: scene.boxes.filter(box => box.open).length, view: {...graph.view}, matches: matches.size,
    selected: scene.byPath.get(selected)?.node[NAME] ?? null, firstPaint, lastDraw, lastSearch,
  }),
  // Where the box of a name is in the window: its left, top, right and bottom.
  boxOf: name => {
    const box = scene.boxes.find(b => b.node[NAME] === name), rect = canvas.getBoundingClientRect();
    if (!box) return null;
    const {x, y, scale} = graph.view;
    return [rect.left + (box.x - x) * scale, rect.top + (box.y - y) * scale,
            rect.left + (box.x + box.w - x) * scale, rect.top + (box.y + box.h - y) * scale];
  },
};
)js";

}  // namespace kiln::draw
