/* Calls to the server, and one stream of events for the whole browser. */

const RUN = "sevenfold-run";
const RETRY_MS = 2000;

export class CallFailed extends Error {}

async function call(method, path, fields) {
  const headers = { "x-sevenfold-run": localStorage.getItem(RUN) ?? "" };
  let address = `/api/${path}`;
  const options = { method, headers };
  if (method === "GET") {
    const query = new URLSearchParams(fields ?? {}).toString();
    if (query) address += `?${query}`;
  } else {
    headers["content-type"] = "application/json";
    options.body = JSON.stringify(fields ?? {});
  }
  let response;
  let text;
  try {
    response = await fetch(address, options);
    text = await response.text();
  } catch {
    throw new CallFailed("The server does not answer. Is `sevenfold ui` still running?");
  }
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new CallFailed(text || "The answer of the server broke off. Reload the page.");
  }
  if (!response.ok) throw new CallFailed(answer.error || `The server answered ${response.status}.`);
  return answer;
}

export function get(path, fields) {
  return call("GET", path, fields);
}

export function post(path, fields) {
  return call("POST", path, fields);
}

/*
 * A browser has six connections to a server, for all tabs together. So one tab has the stream and passes its
 * events on to the others; when it is closed, the next one opens it.
 */
export function listen(onEvent) {
  const channel = new BroadcastChannel("sevenfold");
  channel.onmessage = ({ data }) => onEvent(data.name, data.value);
  const pass = (name, value) => {
    channel.postMessage({ name, value });
    onEvent(name, value);
  };
  navigator.locks.request("sevenfold-stream", async () => {
    for (;;) {
      await readStream(pass);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  });
}

async function readStream(pass) {
  let ticket;
  try {
    ({ ticket } = await post("stream"));
  } catch {
    pass("offline", true);
    return;
  }
  pass("offline", false);
  await new Promise((resolve) => {
    const source = new EventSource(`/api/stream?ticket=${encodeURIComponent(ticket)}`);
    for (const name of ["live", "sessions", "memories"]) {
      source.addEventListener(name, (event) => pass(name, JSON.parse(event.data)));
    }
    // A ticket works once, so a new try needs a new one.
    source.onerror = () => {
      source.close();
      resolve();
    };
  });
}
