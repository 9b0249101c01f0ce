#pragma once

#include <cstdint>
#include <string>

namespace zeroproof {

// An exception that the recording saw.
struct DigestException {
  std::uint64_t lc = 0;
  std::string text;  // "RuntimeError: ..."; its beginning
  bool is_uncaught = false;
};

// The parameters that a rank declared and its wrapper reduces, as sums of hashes that do not depend
// on their order.
struct DeclaredParameters {
  std::uint64_t count = 0;
  std::uint64_t names = 0;
  std::uint64_t trained = 0;   // names with whether they need a gradient
  std::uint64_t shapes = 0;    // names with shapes and types
  std::uint64_t in_order = 0;  // chained names
};

// Why event kinds are lost that a comparison needs, as the notes of the file say; empty: they are
// not lost.
struct LostReasons {
  std::string issues;       // coll.issue
  std::string completions;  // coll.complete
  std::string hooks;        // param.post_acc
  std::string steps;        // opt.step
  std::string parameters;   // the announcements that say what a collective is for
};

}  // namespace zeroproof
