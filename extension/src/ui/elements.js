/** Elements without HTML in strings: nothing that a page, a server or a list says is parsed as markup or turns others
 * around. */

import { visible } from "../core/index.js";
import { language } from "../platform/messages.js";

/** @typedef {Node | string | number | null | undefined} Child */
/** @typedef {string | number | boolean | null | (() => void)} Attribute */

/** element("p", {class: "note", onclick: act}, "text", child, …); children that are null are left out.
 * @template {keyof HTMLElementTagNameMap} T @param {T} tag @param {Record<string, Attribute>} [attributes]
 * @param {...(Child | Child[])} children */
export function element(tag, attributes = {}, ...children) {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) created.addEventListener(name.slice(2), /** @type {() => void} */ (value));
    else if (typeof value === "boolean") created.toggleAttribute(name, value);
    else if (value !== null) created.setAttribute(name, visible(String(value)));
  }
  created.append(...shown(children));
  return created;
}

/** @param {string} id */
export function byId(id) {
  return expected(document.getElementById(id), HTMLElement);
}

/** The node as an element of this kind; a page without it is broken.
 * @template {Element} E @param {Element | null} node @param {new () => E} kind @returns {E} */
export function expected(node, kind) {
  if (!(node instanceof kind)) throw new TypeError(`this page lacks an element: ${kind.name}`);
  return node;
}

/** Exchange all children of an element. @param {Element} target @param {...(Child | Child[])} children */
export function fill(target, ...children) {
  target.replaceChildren(...shown(children));
}

/** @param {(Child | Child[])[]} children */
function shown(children) {
  const present = children.flat().filter((child) => child !== null && child !== undefined);
  return present.map((child) => (child instanceof Node ? child : visible(String(child))));
}

/** Date and time in the language of the words beside them. @param {number} seconds */
export function when(seconds) {
  return new Date(seconds * 1000).toLocaleString(language(), { dateStyle: "medium", timeStyle: "short" });
}
