#include "sim/trace/diff.h"

#include <algorithm>
#include <deque>

namespace zeroproof {
namespace {

class TokenStream {
 public:
  TokenStream(TraceReader& reader, const NameTable& names, const TraceDiffOptions& options)
      : reader_(reader), names_(names), options_(options) {}

  // Sets `token`; false at the end of the trace.
  Result<bool> next(PlacedToken& token) {
    while (true) {
      const auto record = reader_.next();
      if (!record) return tl::unexpected(record.error());
      if (*record == nullptr) return false;
      const HookEvent* event = (*record)->event();
      if (event == nullptr) continue;
      token.token.clear();
      if (!append_order_token(*event, names_, options_.detail, token.token)) continue;
      if (is_skipped(token.token)) continue;
      token.lc = event->lc;
      token.line_number = (*record)->line_number;
      return true;
    }
  }

 private:
  bool is_skipped(const std::string& token) const {
    return std::any_of(options_.skip.begin(), options_.skip.end(),
                       [&](const std::string& prefix) { return token.starts_with(prefix); });
  }

  TraceReader& reader_;
  const NameTable& names_;
  const TraceDiffOptions& options_;
};

}  // namespace

Result<TraceComparison> diff_traces(TraceReader& left, const NameTable& left_names,
                                    TraceReader& right, const NameTable& right_names,
                                    const TraceDiffOptions& options) {
  TokenStream left_tokens(left, left_names, options);
  TokenStream right_tokens(right, right_names, options);
  TraceComparison out;
  std::deque<std::string> before;
  PlacedToken a;
  PlacedToken b;
  while (true) {
    const Result<bool> has_left = left_tokens.next(a);
    if (!has_left) return tl::unexpected(has_left.error());
    const Result<bool> has_right = right_tokens.next(b);
    if (!has_right) return tl::unexpected(has_right.error());
    if (!*has_left && !*has_right) return out;
    if (!*has_left || !*has_right || a.token != b.token) {
      TraceDifference& difference = out.difference.emplace();
      difference.position = out.equal_tokens;
      if (*has_left) difference.left = a;
      if (*has_right) difference.right = b;
      difference.before.assign(before.begin(), before.end());
      return out;
    }
    ++out.equal_tokens;
    before.push_back(a.token);
    if (before.size() > options.context_tokens) before.pop_front();
  }
}

}  // namespace zeroproof
