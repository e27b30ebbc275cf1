/** Elements without HTML in strings: nothing that a page, a server or a list says is parsed as markup or turns others
 * around. */

import { visible } from "../core/index.js";

/** element("p", {class: "note", onclick: act}, "text", child, …); children that are null are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else if (value !== null) made.setAttribute(name, visible(String(value)));
  }
  made.append(...shown(children));
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Exchange all children of an element. */
export function fill(target, ...children) {
  target.replaceChildren(...shown(children));
}

function shown(children) {
  const present = children.flat().filter((child) => child !== null && child !== undefined);
  return present.map((child) => (child instanceof Node ? child : visible(String(child))));
}

/** Date and time as the user writes them. */
export function when(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
