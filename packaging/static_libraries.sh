#!/usr/bin/env bash
# static_libraries.sh FOLDER: FOLDER/libNAME.a of the libraries that Debian has as shared ones only,
# from the sources of the release that is installed. `./zp wheel` links them. Needs no root.
set -euo pipefail

folder=$1
# Library, source package, sources below its folder, include folders below it.
libraries="fmt fmtlib src/format.cc,src/os.cc include
simdjson simdjson singleheader/simdjson.cpp singleheader
tinyxml2 tinyxml2 tinyxml2.cpp ."

installed_version() {  # LIBRARY -> the upstream version of its -dev package
  dpkg-query -W -f '${Version}' "lib$1-dev" | sed 's/^[0-9]*://; s/[-+].*//'
}

apt() {
  apt-get -qq -o Dir::Etc::SourceList="$folder/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$folder/apt/lists" -o Dir::Cache="$folder/apt/cache" \
    -o APT::Sandbox::User="$(id -un)" "$@"
}

fetch_lists() {
  local codename
  codename=$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")
  mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial}
  printf 'deb-src %s http://deb.debian.org/debian %s main\n' \
    '[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]' "$codename" \
    >"$folder/apt/sources.list"
  apt update
}

compile_library() {  # LIBRARY PACKAGE SOURCES INCLUDES
  local library=$1 package=$2 sources=$3 includes=$4 tree=$folder/$2 source objects=()
  rm -rf "$tree" && mkdir -p "$tree/download"
  (cd "$tree/download" && apt source --download-only "$package=$(dpkg-query -W -f '${source:Version}' "lib$library-dev")")
  tar -xf "$tree"/download/*.orig.tar.* -C "$tree" --strip-components=1
  for source in ${sources//,/ }; do
    objects+=("$tree/$(basename "${source%.*}").o")
    g++ -O2 -DNDEBUG -std=c++17 -fPIC -I"$tree/$includes" -c "$tree/$source" -o "${objects[-1]}"
  done
  ar rcsD "$folder/lib$library.a" "${objects[@]}"
  installed_version "$library" >"$folder/lib$library.version"
}

mkdir -p "$folder"
while read -r library package sources includes; do
  [[ -f $folder/lib$library.a &&
     $(cat "$folder/lib$library.version") == "$(installed_version "$library")" ]] && continue
  [[ -d $folder/apt ]] || fetch_lists
  compile_library "$library" "$package" "$sources" "$includes"
done <<<"$libraries"
