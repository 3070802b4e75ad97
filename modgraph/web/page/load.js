// Files of the page's own folder.

function refused(name, response) {
  const error = new Error(response.status === 404 ? `the file ${name} is missing` : `the server answers ${response.status} for ${name}`);
  error.name = "The folder is not whole";
  return error;
}

export async function json(name) {
  const response = await fetch(name);
  if (!response.ok) throw refused(name, response);
  return response.json();
}

// The bytes of a file; `report` hears what part of it is there, from 0 to 1.
export async function fetched(name, report) {
  const response = await fetch(name);
  if (!response.ok) throw refused(name, response);
  const size = Number(response.headers.get("content-length")) || 0;
  const parts = [];
  let count = 0;
  for (let reader = response.body.getReader(), part; !(part = await reader.read()).done; ) {
    parts.push(part.value);
    count += part.value.length;
    if (size) report(Math.min(1, count / size)); // a server may have compressed it
  }
  const content = new Uint8Array(count);
  count = 0;
  for (const part of parts) {
    content.set(part, count);
    count += part.length;
  }
  return content;
}
