#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace zeroproof {

// What became of a text in Hjson, the superset of JSON that DeepSpeed reads.
struct HjsonText {
  std::string json;    // the same document in JSON; empty on an error
  std::string error;   // what is wrong; empty: no error
  std::size_t at = 0;  // of an error: the byte in the given text
};

// Rewrites Hjson as JSON: comments (#, //, /* */), trailing and missing commas, keys and texts
// without quotes, texts in single quotes, a root object without braces. Multi-line texts (''') are
// an error, and so are more than 64 levels. Numbers and the inside of texts are not checked.
HjsonText json_of_hjson(std::string_view text);

}  // namespace zeroproof
