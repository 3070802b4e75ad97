#!/usr/bin/env bash
# Makes elk.bundled.js.gz anew from the npm package, and checks it against the SHA-256 in README.md.
set -euo pipefail
cd "$(dirname "$0")"
version=0.12.1
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
(cd "$folder" && npm pack --silent "elkjs@$version" && tar xzf "elkjs-$version.tgz")
expected=$(grep -o '[0-9a-f]\{64\}' README.md)
echo "$expected  $folder/package/lib/elk.bundled.js" | sha256sum --check --quiet
gzip -9nc "$folder/package/lib/elk.bundled.js" > elk.bundled.js.gz
cp "$folder/package/LICENSE.md" LICENSE.md
