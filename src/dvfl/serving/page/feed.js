// The server's events, by fetch and not by EventSource, which cannot send a token.

const QUIET_MS = 5000; // without an event, before the connection is given up
const KEY = "dvfl-token";

export function headers() {
  const token = sessionStorage.getItem(KEY);
  return token ? { authorization: `Bearer ${token}` } : {};
}

export function keep(token) {
  sessionStorage.setItem(KEY, token);
}

export function forget() {
  sessionStorage.removeItem(KEY);
}

// Runs for good; `seen` has a method for each event, `lost(why)` and `unknown(why)` where a token is needed.
export async function follow(seen) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 4000)) {
    const stop = new AbortController();
    let timer = setTimeout(() => stop.abort(), QUIET_MS);
    try {
      const response = await fetch("/v1/events", { headers: headers(), signal: stop.signal });
      if (response.status === 401) {
        clearTimeout(timer);
        await seen.unknown((await response.json()).error);
        wait = 250;
        continue;
      }
      if (!response.ok) throw new Error((await response.json()).error);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let rest = ""; ;) {
        const { value, done } = await reader.read();
        if (done) break;
        clearTimeout(timer);
        timer = setTimeout(() => stop.abort(), QUIET_MS);
        wait = 500;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) handle(part, seen);
      }
      seen.lost("the server has left");
    } catch (error) {
      seen.lost(error.name === "AbortError" ? "the server is silent" : "the server is not reached");
    } finally {
      clearTimeout(timer);
    }
    await new Promise((resume) => setTimeout(resume, wait));
  }
}

function handle(part, seen) {
  const lines = part.split("\n");
  const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
  const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
  if (name && data) seen[name]?.(JSON.parse(data));
}
