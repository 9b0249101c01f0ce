#pragma once

#include <cstddef>
#include <string>

#include "props/report/palette.h"
#include "props/watch/watch_news.h"

namespace zeroproof {

// One news of a watched job as lines of text; the time after the watch began stands first. A file
// that is not there yet is not named.
std::string watch_text(const WatchNews& news, std::size_t columns, const Palette& palette);

// The same as one line of JSON, of the schema zeroproof.watch/1.
std::string watch_json(const WatchNews& news);

}  // namespace zeroproof
