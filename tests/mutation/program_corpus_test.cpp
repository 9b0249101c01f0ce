// Every entry of the corpus still shows its fault, and no finding without it.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "props/hunt/corpus.h"
#include "props/mutation/mutants.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> corpus_files() {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(ZP_SOURCE_DIR "/tests/mutation/corpus"))
    files.push_back(file.path());
  std::ranges::sort(files);
  return files;
}

std::string numbers_of(const hunt::CaseResult& result) {
  std::string numbers;
  for (const hunt::Falsified& one : result.falsified)
    numbers += std::string(one.property->number) + ": " + one.text + "\n";
  return numbers;
}

// By any property: which one speaks first may change with the engine.
void expect_shown(const fs::path& file) {
  const auto entry = hunt::parse_corpus_entry(read_file(file), file.filename().string());
  ASSERT_TRUE(entry) << entry.error().text;
  const auto program = hunt::CorpusCase::make(*entry);
  ASSERT_TRUE(program) << file << ": " << program.error().text;
  if (entry->fault.empty()) {
    EXPECT_EQ(numbers_of(program->run({})), "") << file;
    return;
  }
  EXPECT_EQ(file.stem().string(), entry->fault);
  const Fault* const fault = find_fault(entry->fault);
  ASSERT_NE(fault, nullptr) << file;
  const hunt::Mutant mutant = mutant_of(*fault);
  EXPECT_EQ(numbers_of(program->run(mutant.reference)), "") << file;
  EXPECT_FALSE(program->run(mutant.variant).falsified.empty()) << file;
}

TEST(ProgramCorpus, EachEntryShowsItsFaultAndHoldsWithoutIt) {
  const std::vector<fs::path> files = corpus_files();
  ASSERT_GE(files.size(), 500U);
  for (const fs::path& file : files) expect_shown(file);
}

TEST(ProgramCorpus, EntriesComeBackFromTheirDocuments) {
  for (const fs::path& file : corpus_files()) {
    const std::string text = read_file(file);
    const auto entry = hunt::parse_corpus_entry(text, file.filename().string());
    ASSERT_TRUE(entry) << entry.error().text;
    EXPECT_EQ(hunt::corpus_json(*entry), text) << file;
  }
}

TEST(ProgramCorpus, WhatIsNoEntryIsNamed) {
  for (const char* text : {"", "{}", R"({"schema":"zeroproof.program/1"})"}) {
    const auto entry = hunt::parse_corpus_entry(text, "wrong.json");
    ASSERT_FALSE(entry) << text;
    EXPECT_EQ(entry.error().text, "wrong.json: no document of zeroproof.program_corpus/1");
  }
}

}  // namespace
}  // namespace zeroproof::mutation
