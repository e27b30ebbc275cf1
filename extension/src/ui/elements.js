/** Elements without HTML in strings: nothing that a page, a server or a list says is ever parsed as markup. */

/** element("p", {class: "note", onclick: act}, "text", child, …); children that are null are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (typeof value === "boolean") made.toggleAttribute(name, value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function byId(id) {
  return document.getElementById(id);
}

/** Exchange all children of an element. */
export function fill(target, ...children) {
  target.replaceChildren(...children.flat().filter((child) => child !== null));
}

/** Date and time as the user writes them. */
export function when(seconds) {
  return new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
