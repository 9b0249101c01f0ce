// The names of the upstream behaviours, and sets of them.
#include "zeroproof/engine/quirks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace zeroproof {
namespace {

std::vector<Quirk> members(const Quirks& quirks) {
  std::vector<Quirk> members;
  for (const QuirkInfo& info : quirk_catalogue()) {
    if (quirks.has(info.quirk)) members.push_back(info.quirk);
  }
  return members;
}

TEST(Quirks, Are_one_a_hazard_in_the_order_of_their_numbers) {
  const auto catalogue = quirk_catalogue();
  ASSERT_EQ(catalogue.size(), std::size_t{kQuirks});
  std::set<std::string_view> names;
  for (std::size_t at = 0; at < catalogue.size(); ++at) {
    EXPECT_EQ(static_cast<std::size_t>(catalogue[at].quirk), at);
    const bool is_hazard = catalogue[at].quirk < Quirk::n4_overflow_keeps_scale;
    EXPECT_EQ(catalogue[at].id.front(), is_hazard ? 'h' : 'n');
    if (is_hazard) {
      EXPECT_EQ(catalogue[at].id, fmt::format("h{}", at + 1));
    }
    names.insert(catalogue[at].name);
  }
  EXPECT_EQ(names.size(), catalogue.size());
}

TEST(Quirks, Say_their_effect_in_one_sentence) {
  for (const QuirkInfo& info : quirk_catalogue()) {
    SCOPED_TRACE(info.id);
    EXPECT_TRUE(info.effect.ends_with('.'));
    EXPECT_EQ(info.effect.find('\n'), std::string_view::npos);
    EXPECT_EQ(std::ranges::count(info.effect, '.'),
              std::ranges::count(info.name, '.') +
                  (info.effect.find("engine.backward") != std::string_view::npos ? 2 : 1));
    EXPECT_LE(info.effect.size(), 100U);
  }
}

TEST(Quirks, Upstream_is_all_but_that_of_a_proposal) {
  const Quirks upstream = Quirks::upstream();
  for (const QuirkInfo& info : quirk_catalogue()) {
    const bool is_hazard = info.id.starts_with("h");
    EXPECT_EQ(upstream.has(info.quirk), is_hazard && info.id != "h23") << info.id;
  }
}

struct ReleaseRow {
  const char* release;
  const char* lacks;  // of H1 to H26
  const char* has;    // of N4 to N8
};

// docs/reference/hazards.md has what each of them did.
TEST(Quirks, Of_a_release_are_those_of_its_range) {
  constexpr ReleaseRow kQuirkRows[] = {
      {"deepspeed-0.18.9", "h23", "none"},      {"deepspeed-0.19.2", "h23", "none"},
      {"deepspeed-0.19.5", "h23", "n8"},        {"deepspeed-0.19.6", "h22,h23", "n6,n8"},
      {"deepspeed-0.19.7", "h22,h23", "n6,n8"}, {"deepspeed-0.19.8", "h22,h23", "n4,n5,n6,n8"},
  };
  for (const ReleaseRow& row : kQuirkRows) {
    SCOPED_TRACE(row.release);
    const Quirks quirks = *Quirks::parse(row.release);
    const Quirks lacks = *Quirks::parse(row.lacks);
    const Quirks has = *Quirks::parse(row.has);
    for (const QuirkInfo& info : quirk_catalogue()) {
      const bool is_expected =
          info.id.starts_with("h") ? !lacks.has(info.quirk) : has.has(info.quirk);
      EXPECT_EQ(quirks.has(info.quirk), is_expected) << info.id;
    }
    EXPECT_TRUE(quirks.is_upstream());
    EXPECT_EQ(Quirks::parse(quirks.text())->text(), quirks.text());
  }
}

// What every release has makes an engine upstream's; with one of these quirks less it is ours.
TEST(Quirks, Are_upstreams_where_no_quirk_of_every_release_is_missing) {
  EXPECT_TRUE(Quirks::upstream().is_upstream());
  EXPECT_FALSE(Quirks().is_upstream());
  for (const QuirkInfo& missing : quirk_catalogue()) {
    Quirks others;
    for (const QuirkInfo& info : quirk_catalogue())
      if (info.quirk != missing.quirk) others.add(info.quirk);
    const bool is_in_each = missing.releases && missing.releases->first == kStudiedReleases.first &&
                            missing.releases->last == kStudiedReleases.last;
    EXPECT_EQ(others.is_upstream(), !is_in_each) << missing.id;
  }
}

RC_GTEST_PROP(Quirks, Are_read_as_they_are_written, ()) {
  const auto wanted = *rc::gen::container<std::set<int>>(rc::gen::inRange(0, kQuirks));
  Quirks quirks;
  for (const int number : wanted) quirks.add(static_cast<Quirk>(number));
  const auto read = Quirks::parse(quirks.text());
  RC_ASSERT(read.has_value());
  RC_ASSERT(members(*read) == members(quirks));
  RC_ASSERT(members(quirks).size() == wanted.size());
  RC_ASSERT(quirks.is_empty() == wanted.empty());
}

RC_GTEST_PROP(Quirks, Are_read_by_id_or_name_in_any_order, ()) {
  const auto words = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::pair<int, bool>>>(
      rc::gen::pair(rc::gen::inRange(0, kQuirks), rc::gen::arbitrary<bool>())));
  std::string text;
  std::set<Quirk> expected;
  for (const auto& [number, is_by_name] : words) {
    const QuirkInfo& info = quirk_catalogue()[static_cast<std::size_t>(number)];
    text += fmt::format("{}{}", text.empty() ? "" : ", ", is_by_name ? info.name : info.id);
    expected.insert(info.quirk);
  }
  const auto read = Quirks::parse(text);
  RC_ASSERT(read.has_value());
  RC_ASSERT(members(*read) == std::vector<Quirk>(expected.begin(), expected.end()));
}

TEST(Quirks, Have_words_for_none_and_for_all_of_upstream) {
  EXPECT_TRUE(Quirks::parse("none")->is_empty());
  EXPECT_EQ(Quirks().text(), "none");
  EXPECT_EQ(Quirks::parse("upstream")->text(), Quirks::upstream().text());
  EXPECT_EQ(members(*Quirks::parse("upstream,h23,n4,n5,n6,n8")).size(), std::size_t{kQuirks});
}

struct BadText {
  const char* text;
  const char* expected;
};

TEST(Quirks, Name_the_nearest_for_an_unknown_word) {
  constexpr BadText kBad[] = {
      {"H6", "did you mean 'h6'?"},
      {"h16,partition_never_cleard", "did you mean 'partition_never_cleared'?"},
      {"upstrem", "did you mean 'upstream'?"},
      {"h27", "unknown quirk 'h27'"},
      {"n7", "unknown quirk 'n7'"},
      {"", "an empty quirk"},
      {"h1,,h2", "an empty quirk"},
      {"h1,", "an empty quirk"},
      {"none,h1", "'none' stands alone"},
      {"deepspeed-0.18.3", "the hazards of DeepSpeed 0.18.3 are not known: give a release from"},
      {"h1,deepspeed-0.20.0", "from 0.18.9 to 0.19.8"},
      {"deepspeed-latest", "is no release of DeepSpeed"},
  };
  for (const BadText& bad : kBad) {
    SCOPED_TRACE(bad.text);
    const auto read = Quirks::parse(bad.text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::usage);
    EXPECT_NE(read.error().text.find(bad.expected), std::string::npos) << read.error().text;
  }
}

}  // namespace
}  // namespace zeroproof
