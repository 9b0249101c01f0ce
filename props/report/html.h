#pragma once

#include <string>

#include "props/report/picture/picture.h"

namespace zeroproof {

// The picture as one self-contained HTML page (docs/how-to/make_reports.md): lanes to
// zoom, pan, search and filter, the findings with their events. Equal pictures give equal bytes.
std::string picture_html(const Picture& picture);

// Text that a page unpacks when it is asked for: gzip in base64, which no element can end.
std::string packed_text(const std::string& text);

}  // namespace zeroproof
