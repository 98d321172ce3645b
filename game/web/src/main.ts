// The beginning: the canvas, the Worker, the application.

import { App } from "./app.ts";
import { Link } from "./link.ts";
import "./ui/style.css";
import "./ui/hud.css";

const canvas = document.querySelector<HTMLCanvasElement>("#view");
const parent = document.querySelector<HTMLElement>("#interface");
if (canvas === null || parent === null) throw new Error("the page has a canvas and a place for the interface");
const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module", name: "biobot" });
new App(canvas, parent, new Link(worker));
