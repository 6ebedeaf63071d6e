#include "draw/page_parts.h"

namespace kiln::draw {

const std::string_view kPageStyle = R"css(
html, body { height: 100%; margin: 0 }
body { display: flex; flex-direction: column; font: 13px sans-serif; color: #223 }
header { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; padding: 6px 10px;
         border-bottom: 1px solid #ccd }
header input { width: 22em }
button.on { background: #446; color: #fff }
main { flex: 1; display: flex; min-height: 0 }
canvas, #sheet { flex: 1; min-width: 0; height: 100% }
canvas { cursor: grab; outline: none }
#sheet { overflow: auto; padding: 0 10px }
#panel { width: 26em; overflow: auto; border-left: 1px solid #ccd; padding: 8px }
pre, .mono { font: 11px ui-monospace, Menlo, 'DejaVu Sans Mono', monospace }
#panel pre { white-space: pre-wrap; overflow-wrap: anywhere }
a { color: #236; cursor: pointer; text-decoration: underline }
.row { padding: 1px 2px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
       border-left: 6px solid; margin-bottom: 1px }
.row:hover, tr.pass:hover { background: #eef }
table { border-collapse: collapse } td, th { padding: 1px 10px 1px 0; text-align: left; vertical-align: top }
tr.pass { cursor: pointer } tr.same { color: #99a }
.added { color: #171 } .removed { color: #a22 } .marked { background: #fff3b0 }
[hidden] { display: none }
)css";

const std::string_view kPageBody = R"html(<body>
<header><b id="title"></b><span id="tabs"></span>
<input id="search" type="search" placeholder="search (/): names, ops, shapes, origins">
<span id="found"></span>
<button id="fit" title="f">fit</button><button id="open">open all</button>
<button id="close">close all</button></header>
<main><canvas id="canvas" tabindex="0"></canvas><div id="sheet" hidden></div>
<aside id="panel"></aside></main>
)html";

}  // namespace kiln::draw
