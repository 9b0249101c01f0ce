#pragma once

#include <string>

#include "props/report/picture/picture.h"
#include "props/report/timeline.h"

namespace zeroproof {

struct SvgOptions {
  bool shows_details = false;
  std::size_t rows_max = 240;  // of a longer run: what is around its findings, or its beginning
};

// The picture as a swim-lane chart that stands still: time runs down, a lane a rank and thread,
// broken rules marked and named. For a finding of some dozen events; equal pictures give equal
// bytes. Light and dark follow the reader's settings.
std::string picture_svg(const Picture& picture, const SvgOptions& options = {});

// The same rows for the terminal.
std::string picture_text(const Picture& picture, const TimelineOptions& options);

}  // namespace zeroproof
