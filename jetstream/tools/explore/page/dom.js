// Small helpers: elements by id, new elements, and links from a rule to its text and its code.

export const $ = (id) => document.getElementById(id);

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export class Rules {
  constructor(rules, sources) {
    this.rules = rules;
    this.sources = sources;
  }

  // The text of a rule, with a button that shows the line of code.
  show(id) {
    const rule = this.rules[id];
    if (!rule) {
      return make("span", {}, id);
    }
    const shown = make("span", {}, `${id}: ${rule.text} `);
    if (rule.file) {
      const button = make("button", { type: "button" }, `${rule.file}:${rule.line}`);
      button.onclick = () => this.open(rule.file, rule.line);
      shown.append(button);
    }
    return shown;
  }

  open(file, line) {
    const pre = $("source-text");
    pre.replaceChildren();
    this.sources[file].split("\n").forEach((text, index) => {
      const shown = `${String(index + 1).padStart(4)}  ${text}\n`;
      pre.append(index + 1 === line ? make("mark", {}, shown) : shown);
    });
    $("source-title").textContent = file;
    $("source").showModal();
    pre.querySelector("mark").scrollIntoView({ block: "center" });
  }
}
