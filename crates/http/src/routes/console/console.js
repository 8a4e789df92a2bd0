// The console: sends the query in the box to /sparql and shows what comes back.
// Terms reach the page through textContent only, and only http(s) IRIs become
// links, so data can neither become markup nor script.
"use strict";

const ROWS_SHOWN_MAX = 1000;
const CHARACTERS_SHOWN_MAX = 200000;
const ANSWER_BYTES_MAX = 50000000;
const LINE_SHOWN_MAX = 120;
// Answers as the page shows them; what is wrong with a query with its place.
const ACCEPT = "application/sparql-results+json, text/turtle;q=0.9, application/trig;q=0.8, text/plain;q=0.5, application/problem+json;q=0.1";
const XSD = "http://www.w3.org/2001/XMLSchema#";
const NUMBERS = new Set(["integer", "decimal", "double", "float", "int", "long"].map(name => XSD + name));

const SAMPLES = [
  ["Ten triples", "SELECT ?subject ?predicate ?object\nWHERE { ?subject ?predicate ?object }\nLIMIT 10"],
  ["How many triples?", "SELECT (COUNT(*) AS ?triples)\nWHERE { ?s ?p ?o }"],
  ["Which properties, how often?", "SELECT ?property (COUNT(*) AS ?uses)\nWHERE { ?s ?property ?o }\nGROUP BY ?property\nORDER BY DESC(?uses)\nLIMIT 50"],
  ["Which classes, how often?", "SELECT ?class (COUNT(?instance) AS ?instances)\nWHERE { ?instance a ?class }\nGROUP BY ?class\nORDER BY DESC(?instances)\nLIMIT 50"],
  ["Named graphs", "SELECT DISTINCT ?graph\nWHERE { GRAPH ?graph { ?s ?p ?o } }\nLIMIT 100"],
  ["Labels that contain a word", "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>\nSELECT ?thing ?label\nWHERE {\n  ?thing rdfs:label ?label .\n  FILTER CONTAINS(LCASE(?label), \"an\")\n}\nLIMIT 20"],
];

const $ = id => document.getElementById(id);
let running = null;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// The prefixes of the database, the longest IRI first.
let prefixes = [];
// What may stand behind a prefix as it is, or less.
const LOCAL_NAME = /^(?:[\p{L}\p{N}_](?:[\p{L}\p{N}_.-]*[\p{L}\p{N}_-])?)?$/u;

// An IRI with a prefix, if the one with the longest IRI fits.
function shortened(iri) {
  const prefix = prefixes.find(known => iri.startsWith(known.iri));
  const local = prefix && iri.slice(prefix.iri.length);
  return prefix && LOCAL_NAME.test(local) ? prefix.name + ":" + local : iri;
}

async function fetchPrefixes() {
  const response = await fetch("/prefixes", { headers: { Accept: "application/json" } });
  if (!response.ok) return;
  prefixes = (await response.json()).prefixes;
  prefixes.sort((one, other) => other.iri.length - one.iri.length);
}

function iriNode(iri) {
  const text = shortened(iri);
  if (!/^https?:/i.test(iri)) return element("span", text);
  const link = element("a", text);
  link.href = iri;
  link.title = iri;
  link.rel = "noreferrer noopener";
  link.target = "_blank";
  return link;
}

// An IRI's cell also offers to look at the thing in this database.
function describeButton(iri) {
  const link = element("a", "\u2299");
  link.href = "#";
  link.title = "What does the database say about it?";
  link.addEventListener("click", event => {
    event.preventDefault();
    if (/[<>"{}|^`\\\u0000-\u0020]/.test(iri)) return;
    $("query").value = "SELECT ?property ?value\nWHERE { <" + iri + "> ?property ?value }\nLIMIT 1000";
    run("/sparql");
  });
  return link;
}

function cell(term) {
  if (!term) return element("td", "", "unbound");
  if (term.type === "uri") {
    const td = element("td");
    td.append(iriNode(term.value), " ", describeButton(term.value));
    return td;
  }
  if (term.type === "bnode") return element("td", "_:" + term.value);
  const td = element("td", term.value, NUMBERS.has(term.datatype) ? "number" : "");
  if (term["xml:lang"]) td.append(" ", element("span", "@" + term["xml:lang"], "kind"));
  else if (term.datatype && !term.datatype.startsWith(XSD)) td.append(" ", element("span", shortened(term.datatype), "kind"));
  return td;
}

function showSolutions(answer) {
  const names = answer.head.vars;
  const rows = answer.results.bindings;
  const table = element("table");
  const head = table.createTHead().insertRow();
  for (const name of names) head.append(element("th", "?" + name));
  const body = table.createTBody();
  for (const row of rows.slice(0, ROWS_SHOWN_MAX)) {
    const tr = body.insertRow();
    for (const name of names) tr.append(cell(row[name]));
  }
  $("result").replaceChildren(table);
  if (rows.length > ROWS_SHOWN_MAX) {
    $("result").append(element("p", "The first " + ROWS_SHOWN_MAX + " rows are shown.", "note"));
  }
  return rows.length + (rows.length === 1 ? " row" : " rows");
}

// Whoever asks the default graph, and has all data in named graphs, gets nothing, and should know why.
const GRAPH_WORDS = /\b(GRAPH|FROM|SERVICE)\b/i;
const ONLY_NAMED_GRAPHS = "ASK { FILTER NOT EXISTS { ?s ?p ?o } GRAPH ?g { ?a ?b ?c } }";

function isEmpty(query, answer) {
  if (typeof answer.boolean === "boolean") return !answer.boolean;
  const rows = answer.results.bindings;
  const isCount = rows.length === 1 && /\bCOUNT\b/i.test(query);
  return rows.length === 0 || isCount;
}

async function hintAtGraphs(query, contentType, text, current) {
  if (!contentType.startsWith("application/sparql-results+json")) return;
  if (GRAPH_WORDS.test(query) || !isEmpty(query, JSON.parse(text))) return;
  const response = await fetch("/sparql", {
    method: "POST",
    body: new URLSearchParams({ query: ONLY_NAMED_GRAPHS }),
    headers: { Accept: "application/sparql-results+json" },
    signal: current.signal,
  });
  if (!response.ok || !(await response.json()).boolean || current !== running) return;
  $("result").append(element("p", "The default graph is empty, all quads are in named graphs: write GRAPH ?g { \u2026 } "
    + "around the pattern, or start the server with --union-default-graph.", "note"));
}

function showText(text) {
  const shown = text.slice(0, CHARACTERS_SHOWN_MAX);
  $("result").replaceChildren(element("pre", shown));
  if (shown.length < text.length) $("result").append(element("p", "The beginning is shown.", "note"));
  return text.length + " characters";
}

function show(contentType, text) {
  if (!contentType.startsWith("application/sparql-results+json")) return showText(text);
  const answer = JSON.parse(text);
  if (typeof answer.boolean !== "boolean") return showSolutions(answer);
  $("result").replaceChildren(element("p", answer.boolean ? "yes" : "no", "answer"));
  return "";
}

// The whole answer, unless it is more than a page can hold.
async function readText(response) {
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.length;
    if (bytes > ANSWER_BYTES_MAX) {
      reader.cancel();
      throw new Error("more than " + ANSWER_BYTES_MAX / 1e6 + " MB; add a LIMIT, or fetch it with another program");
    }
    text += decoder.decode(value, { stream: true });
  }
}

function fail(message) {
  $("error").textContent = message;
  $("error").hidden = false;
}

// The line of a text that is wrong, and carets under the place.
function drawn(query, { line, column, found }) {
  const characters = Array.from((query.split("\n")[line - 1] || "").replace(/[\t\r]/g, " "));
  const from = Math.max(column - 1 - LINE_SHOWN_MAX * 2 / 3, 0);
  const shown = characters.slice(from, from + LINE_SHOWN_MAX);
  const place = column - 1 - from;
  const marks = Math.max(Math.min(Array.from((found || "").split("\n")[0]).length, shown.length - place), 1);
  return shown.join("").trimEnd() + "\n" + " ".repeat(place) + "^".repeat(marks);
}

// A text after a change, whose place is in bytes of UTF-8.
function changed(query, { offset, length, text }) {
  const bytes = new TextEncoder().encode(query);
  const part = (start, end) => new TextDecoder().decode(bytes.subarray(start, end));
  return part(0, offset) + text + part(offset + length);
}

// What is wrong with the query, and where; the change that mends it, if the server knows one.
function failAt(problem, query) {
  fail(problem.detail);
  if (!problem.line) return;
  $("error").append(element("pre", drawn(query, problem)));
  const suggestion = problem.suggestion;
  if (!suggestion || query.startsWith("\ufeff")) return;
  const button = element("button", "Change it");
  button.type = "button";
  button.addEventListener("click", () => {
    if ($("query").value !== query) return;
    $("query").value = changed(query, suggestion);
    $("error").hidden = true;
    $("query").focus();
  });
  $("error").append(button);
}

async function run(path) {
  if (running) running.abort();
  const current = running = new AbortController();
  $("error").hidden = true;
  $("result").replaceChildren();
  $("timing").textContent = "running \u2026";
  $("stop").disabled = false;
  const query = $("query").value;
  const parameters = new URLSearchParams({ query });
  if ($("timeout").value) parameters.set("timeout", $("timeout").value);
  history.replaceState(null, "", "/#query=" + encodeURIComponent(query));
  const started = performance.now();
  const elapsed = () => Math.max(performance.now() - started, 0).toFixed(1) + " ms";
  try {
    const response = await fetch(path, {
      method: "POST",
      body: parameters,
      headers: { Accept: ACCEPT },
      signal: current.signal,
    });
    const text = await readText(response);
    if (current !== running) return;
    const time = elapsed();
    if (!response.ok) {
      const isProblem = (response.headers.get("Content-Type") || "").startsWith("application/problem+json");
      if (isProblem) failAt(JSON.parse(text), query);
      else fail(text.trim());
      $("timing").textContent = response.status + " \u00b7 " + time;
      return;
    }
    const contentType = response.headers.get("Content-Type") || "";
    const size = show(contentType, text);
    $("timing").textContent = (size ? size + " \u00b7 " : "") + time;
    const warning = response.headers.get("Orrery-Warning");
    if (warning) $("result").prepend(element("p", warning, "note"));
    const isToldOfGraphs = (warning || "").includes("named graphs");
    if (path === "/sparql" && !isToldOfGraphs) await hintAtGraphs(query, contentType, text, current).catch(() => {});
  } catch (error) {
    if (current !== running) return;
    $("timing").textContent = elapsed();
    if (error.name === "AbortError") fail("Stopped.");
    else fail("The answer could not be read to its end: " + error.message);
  } finally {
    if (current === running) {
      running = null;
      $("stop").disabled = true;
    }
  }
}

async function showHealth() {
  try {
    const health = await (await fetch("/health")).json();
    $("health").textContent = health.quads.toLocaleString("en") + " quads \u00b7 version " + health.version;
  } catch {
    $("health").textContent = "the server does not answer";
  }
}

// A link to the console may bring a query, as `?query=` or `#query=`.
function linkedQuery() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  return fragment.get("query") ?? new URLSearchParams(location.search).get("query");
}

function start() {
  for (const [index, [name]] of SAMPLES.entries()) {
    const option = element("option", name);
    option.value = String(index);
    $("sample").append(option);
  }
  const query = linkedQuery();
  $("query").value = query ?? SAMPLES[0][1];
  $("sample").addEventListener("change", () => { $("query").value = SAMPLES[Number($("sample").value)][1]; });
  $("form").addEventListener("submit", event => { event.preventDefault(); run("/sparql"); });
  $("explain").addEventListener("click", () => run("/explain"));
  $("stop").addEventListener("click", () => { if (running) running.abort(); });
  document.addEventListener("keydown", event => {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      run("/sparql");
    }
  });
  showHealth();
  const known = fetchPrefixes().catch(() => {});
  // Whoever follows a link to a query wants its answer.
  if (query !== null) known.then(() => run("/sparql"));
}

start();
