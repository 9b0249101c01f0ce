#pragma once

#include <string>

#include "props/hunt/corpus.h"
#include "props/report/picture/picture.h"

namespace zeroproof {

// One run of a program, recorded.
struct ProgramPicture {
  Picture picture;       // its program, its lanes, and what it falsified
  std::string perfetto;  // the same for ui.perfetto.dev
};

// The run of an entry on engines of that variant. `title` is the page's. Errors: as CorpusCase, and
// of files.
Result<ProgramPicture> program_picture(const hunt::CorpusEntry& entry,
                                       const program::EngineVariant& variant,
                                       const std::string& title);

// Writes BASE.svg, BASE.html and BASE.perfetto.json, which appear whole.
Result<void> write_program_pictures(const ProgramPicture& picture, const std::string& base);

}  // namespace zeroproof
