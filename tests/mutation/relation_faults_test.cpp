// Each relation is seen to fail: tests/mutation/relations has a program and a fault for it.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "props/hunt/corpus.h"
#include "props/mutation/mutants.h"
#include "props/relations/relation.h"
#include "tests/read_file.h"

namespace zeroproof::mutation {
namespace {

std::string path_of(const relations::Relation& relation) {
  return std::string(ZP_SOURCE_DIR "/tests/mutation/relations/") + std::string(relation.number) +
         ".json";
}

TEST(RelationFaults, Falsify_their_relation_which_holds_without_them) {
  for (const relations::Relation& relation : relations::all_relations()) {
    const std::string path = path_of(relation);
    ASSERT_TRUE(std::filesystem::exists(path)) << path;
    const auto entry = hunt::parse_corpus_entry(read_file(path), path);
    ASSERT_TRUE(entry) << entry.error().text;
    EXPECT_EQ(entry->judge.relation, &relation) << path;
    const auto program = hunt::CorpusCase::make(*entry);
    ASSERT_TRUE(program) << path << ": " << program.error().text;
    const Fault* const fault = find_fault(entry->fault);
    ASSERT_NE(fault, nullptr) << path;
    const hunt::Mutant mutant = mutant_of(*fault);
    EXPECT_TRUE(program->run(mutant.reference).falsified.empty()) << path;
    EXPECT_TRUE(program->run(mutant.variant).find(relation.number)) << path;
  }
}

}  // namespace
}  // namespace zeroproof::mutation
