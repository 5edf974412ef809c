"use strict";
// Shows /openapi.json: nothing else is loaded, and a request is sent only when its button is pressed.

const KEPT = "muster-token";
const METHODS = ["get", "head", "put", "patch", "post", "delete"];
const byId = (id) => document.getElementById(id);
let api = {};

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function authorized(token) {
  return { headers: { Authorization: `Bearer ${token}` }, cache: "no-store" };
}

async function open(token) {
  try {
    const answer = await fetch("openapi.json", authorized(token));
    if (answer.status === 401) sessionStorage.removeItem(KEPT);
    else sessionStorage.setItem(KEPT, token);
    if (!answer.ok) return signIn(await refusal(answer));
    api = await answer.json();
  } catch (error) {
    return signIn(`The description of the API can't be read: ${error.message}`);
  }
  byId("sign-in").hidden = true;
  for (const id of ["filter", "download", "sign-out", "api"]) byId(id).hidden = false;
  byId("download").href = URL.createObjectURL(new Blob([JSON.stringify(api, null, 2)]));
  byId("download").download = "openapi.json";
  show();
}

async function refusal(answer) {
  const { error } = await answer.json().catch(() => ({}));
  return error ? `${answer.status} ${error.code}: ${error.message}` : `HTTP ${answer.status} ${answer.statusText}`;
}

function signIn(reason = "") {
  for (const id of ["filter", "download", "sign-out", "api"]) byId(id).hidden = true;
  byId("sign-in").hidden = false;
  byId("refusal").textContent = reason;
  byId("token").focus();
}

function show() {
  const groups = new Map(api.tags.map((tag) => [tag.name, []]));
  for (const [path, methods] of Object.entries(api.paths))
    for (const method of METHODS.filter((each) => methods[each]))
      groups.get(methods[method].tags[0]).push([method.toUpperCase(), path, methods[method]]);
  const nav = document.querySelector("nav");
  const main = document.querySelector("main");
  nav.replaceChildren();
  main.replaceChildren();
  for (const [name, operations] of groups) {
    if (!operations.length) continue;
    nav.append(element("a", { href: `#${name}` }, name, element("span", {}, String(operations.length))));
    const shown = operations.map(([method, path, operation]) => summary(method, path, operation));
    main.append(element("section", { "data-group": name }, element("h2", { id: name }, name), ...shown));
  }
  filter();
  if (location.hash.length > 1) {
    const chosen = byId(decodeURIComponent(location.hash.slice(1)));
    if (chosen) (chosen.open = true), chosen.scrollIntoView();
  }
}

function summary(method, path, operation) {
  const below = path.indexOf("/servers/{serverName}/");
  const start = below < 0 ? 0 : below;
  const details = element("details", { id: operation.operationId },
    element("summary", {},
      element("span", { class: `method ${method}` }, method),
      element("span", { class: "path", title: path }, element("span", { class: "above" }, start ? "…" : ""), ...broken(path.slice(start))),
      element("span", { class: "what" }, operation.operationId)));
  details.dataset.text = [method, path, operation.operationId, operation.summary].join(" ").toLowerCase();
  details.addEventListener("toggle", () => {
    if (details.open && details.children.length === 1) details.append(body(method, path, operation));
  });
  return details;
}

/** The text of a path, which may go on in the next line before a slash. */
function broken(path) {
  return path.split("/").slice(1).flatMap((each) => [element("wbr"), `/${each}`]);
}

function body(method, path, operation) {
  const made = element("div", { class: "body" },
    element("p", {}, operation.summary), element("p", { class: "path" }, ...broken(path)));
  const parameters = operation.parameters.map((each) =>
    row(each.name, `${typeOf(each.schema)}, ${each.in}`, [each.required ? "required" : "", each.description, limits(each.schema)]));
  made.append(element("h3", {}, "Parameters"), table(["name", "type", "meaning"], parameters));
  const content = operation.requestBody?.content["application/json"];
  if (content) {
    const title = operation.requestBody.required ? "Body" : "Body (optional)";
    made.append(element("h3", {}, title), table(["field", "type", "meaning"], fields(content.schema, true)), example(content));
  }
  made.append(element("h3", {}, "Answers"));
  const answers = Object.entries(operation.responses).map(([status, given]) => [status, resolved(given)]);
  made.append(table(["status", "content", "meaning"], answers.map(([status, given]) =>
    row(status, Object.keys(given.content || {}).join(", "), [given.description, headers(given)]))));
  for (const [status, given] of answers.filter(([status]) => status.startsWith("2"))) {
    const shown = given.content?.["application/json"] || given.content?.["text/event-stream"];
    if (!shown) continue;
    const inner = fields(shown.schema);
    made.append(element("h3", {}, `Answer ${status}`));
    if (inner.length) made.append(table(["field", "type", "meaning"], inner));
    made.append(example(shown));
    break;
  }
  made.append(element("h3", {}, "Send"), sender(method, path, operation, content));
  return made;
}

function resolved(schema) {
  return schema.$ref ? schema.$ref.slice(2).split("/").reduce((at, key) => at[key], api) : schema;
}

/** The schema that is not null, and the reference by which it was found. */
function core(schema) {
  const chosen = schema.anyOf?.find((each) => each.type !== "null") || schema;
  return [resolved(chosen), chosen.$ref];
}

function typeOf(schema) {
  const [shown] = core(schema);
  if (shown.type === "array" || shown.type?.[0] === "array") return `list of ${typeOf(shown.items || {})}`;
  const types = [shown.type || "any"].flat().filter((each) => each !== "null");
  return types.join(" or ") + (shown.format ? ` (${shown.format})` : "");
}

function limits(schema) {
  const [shown] = core(schema);
  const range = Math.abs(shown.minimum ?? 0) < 2 ** 31 && shown.minimum !== undefined ? `from ${shown.minimum}` : "";
  const values = shown.enum?.filter((each) => each !== null).join(", ");
  return [values && `one of: ${values}`, range, shown.pattern && `fits ${shown.pattern}`].filter(Boolean).join("; ");
}

/** A row for each field of an object, those of inner objects with their path; `sent`: without read-only ones. */
function fields(schema, sent = false, prefix = "", above = []) {
  const [shown, ref] = core(schema);
  if (above.includes(ref)) return [];
  const items = shown.items && core(shown.items)[0];
  if (items?.properties) return fields(shown.items, sent, `${prefix}[]`, [...above, ref]);
  return Object.entries(shown.properties || {}).flatMap(([name, each]) => {
    if (sent && each.readOnly) return [];
    const path = prefix ? `${prefix}.${name}` : name;
    const notes = [shown.required?.includes(name) ? "required" : "", each.readOnly ? "read-only" : "",
      each.writeOnly ? "write-only" : "", each.description, limits(each)];
    return [row(path, typeOf(each), notes), ...fields(each, sent, path, [...above, ref])];
  });
}

function row(name, type, notes) {
  return element("tr", {}, element("td", {}, element("code", {}, name)), element("td", { class: "type" }, type),
    element("td", {}, notes.filter(Boolean).join("; ")));
}

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((each) => element("th", {}, each)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

function headers(given) {
  const named = Object.keys(given.headers || {}).filter((each) => each !== "x-ms-request-id");
  return named.length ? `Headers: ${named.join(", ")}` : "";
}

function example(content) {
  const value = content.examples?.typical?.value;
  if (value === undefined) return null;
  return element("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2));
}

function sender(method, path, operation, content) {
  const inputs = operation.parameters.map((each) => {
    const id = `${operation.operationId}.${each.name}`;
    const input = element("input", { id, placeholder: String(each.example ?? "") });
    if (each.name === "api-version") input.value = each.example;
    return [each, input, element("label", { for: id }, each.name)];
  });
  const text = content ? element("textarea", { spellcheck: "false", "aria-label": "body" }) : null;
  if (text) text.value = JSON.stringify(content.examples.typical.value, null, 2);
  const form = element("form", { class: "send" }, ...inputs.flatMap(([, input, label]) => [label, input]), text,
    element("button", {}, `Send ${method}`));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    form.querySelectorAll(".stop").forEach((each) => each.click());
    form.querySelectorAll(".answer").forEach((each) => each.remove());
    await send(method, path, inputs, text, (made) => form.append(made));
  });
  return form;
}

async function send(method, path, inputs, text, show) {
  const refuse = (reason) => show(element("p", { class: "answer line refusal" }, reason));
  const request = authorized(sessionStorage.getItem(KEPT));
  const query = new URLSearchParams();
  let url = path;
  for (const [each, { value }] of inputs) {
    if (!value && each.required) return refuse(`${each.name} is required.`);
    if (each.in === "path") url = url.replace(`{${each.name}}`, encodeURIComponent(value));
    else if (value && each.in === "query") query.set(each.name, value);
    else if (value) request.headers[each.name] = value;
  }
  request.method = method;
  if (text?.value.trim()) (request.body = text.value), (request.headers["Content-Type"] = "application/json");
  try {
    const answer = await fetch(`${url.slice(1)}?${query}`, request);
    const said = [...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
    const shown = element("pre", { class: "answer" }, `HTTP ${answer.status}\n${said}\n\n`);
    const stream = answer.headers.get("Content-Type")?.startsWith("text/event-stream");
    if (!stream) shown.append(readable(await answer.text()));
    show(shown);
    if (stream) await follow(answer, shown);
  } catch (error) {
    refuse(`The request failed: ${error.message}`);
  }
}

/** Shows each part of an answer that goes on, until it ends or Stop is pressed. */
async function follow(answer, shown) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const stop = element("button", { type: "button", class: "answer stop" }, "Stop");
  stop.addEventListener("click", () => reader.cancel());
  shown.after(stop);
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) shown.append(part.value);
  } finally {
    stop.remove();
  }
}

function readable(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function filter() {
  const words = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const section of document.querySelectorAll("section")) {
    let any = false;
    for (const each of section.querySelectorAll("details")) {
      each.hidden = !words.every((word) => each.dataset.text.includes(word));
      any ||= !each.hidden;
    }
    section.hidden = !any;
  }
}

byId("filter").addEventListener("input", filter);
byId("sign-out").addEventListener("click", () => {
  sessionStorage.removeItem(KEPT);
  document.querySelector("main").replaceChildren();
  signIn();
});
byId("sign-in").addEventListener("submit", (event) => {
  event.preventDefault();
  open(byId("token").value.trim());
  byId("token").value = "";
});
const kept = sessionStorage.getItem(KEPT);
if (kept) open(kept);
else signIn();
