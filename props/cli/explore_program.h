#pragma once

#include "props/cli/explore_engine.h"
#include "props/cli/verb.h"
#include "props/hunt/corpus.h"

namespace zeroproof {

// `zeroproof explore --level program`: drawn programs, or programs of files in many orders
// (docs/reference/program.md). `judge`: values, host, cuda; empty: values.
Result<VerbResult> explore_programs(const ExploreWords& words, const std::string& judge,
                                    Session& session);

// `zeroproof replay` of what it found: a token "zps1:program/unmutated:…", or an entry of a corpus.
bool is_program_word(const std::string& word);
bool is_program_file(const std::string& word);
Result<hunt::CorpusEntry> read_program_entry(const std::string& path);
Result<VerbResult> replay_program(const std::string& word, Session& session);

}  // namespace zeroproof
