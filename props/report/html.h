#pragma once

#include <string>

#include "props/report/picture/picture.h"

namespace zeroproof {

// The picture as one HTML page that needs nothing else (docs/how-to/make_reports.md): lanes to
// zoom, pan, search and filter, the findings with their events. Equal pictures give equal bytes.
std::string picture_html(const Picture& picture);

}  // namespace zeroproof
