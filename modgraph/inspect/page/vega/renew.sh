#!/usr/bin/env bash
# Makes vega.bundled.js.gz anew from the npm packages, and checks it against the SHA-256 in README.md.
set -euo pipefail
cd "$(dirname "$0")"
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
unpack() {
  (cd "$folder" && npm pack --silent "$1@$2" >&2 && mkdir "$1" && tar xzf "$1-$2.tgz" -C "$1" --strip-components 1)
}
unpack vega 6.4.0
unpack vega-lite 6.4.3
unpack vega-interpreter 2.3.2
{
  cat "$folder/vega/build/vega.min.js" "$folder/vega-lite/build/vega-lite.min.js"
  echo "(() => {"
  sed "s/^import \(.*\) from 'vega-util';/const \1 = vega;/; s/^export .*/globalThis.vegaInterpreter = expression;/" \
    "$folder/vega-interpreter/build/vega-interpreter.js"
  echo "})();"
} | sed '/^\/\/# sourceMappingURL/d' > "$folder/vega.bundled.js"
if [ "${1:-}" = --print ]; then
  sha256sum "$folder/vega.bundled.js"
else
  expected=$(grep -o '[0-9a-f]\{64\}' README.md)
  echo "$expected  $folder/vega.bundled.js" | sha256sum --check --quiet
fi
gzip -9nc "$folder/vega.bundled.js" > vega.bundled.js.gz
cp "$folder/vega/LICENSE" LICENSE
