// Requests to the server: JSON, or an error that says what went wrong.

export async function fetchJson(path) {
  let response;
  try {
    response = await fetch(path);
  } catch {
    throw new Error("The server does not answer. Is `hiernorm explore` still running?");
  }
  const type = response.headers.get("content-type") ?? "";
  if (!type.startsWith("application/json")) {
    throw new Error(`The server answered ${response.status} ${response.statusText} to ${path}`);
  }
  const content = await response.json();
  if (!response.ok) throw new Error(content.error ?? response.statusText);
  return content;
}
