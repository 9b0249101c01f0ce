#include "sim/trace/json_number.h"

#include <charconv>
#include <limits>
#include <system_error>

namespace zeroproof {
namespace {

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') ++at;
  return at;
}

// The grammar of RFC 8259, which is stricter than from_chars.
bool is_json_number(std::string_view text) {
  const std::size_t first = text.starts_with('-') ? 1 : 0;
  std::size_t at = skip_digits(text, first);
  if (at == first || (text[first] == '0' && at > first + 1)) return false;
  if (at < text.size() && text[at] == '.') {
    const std::size_t fraction = at + 1;
    at = skip_digits(text, fraction);
    if (at == fraction) return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const std::size_t exponent = at;
    at = skip_digits(text, exponent);
    if (at == exponent) return false;
  }
  return at == text.size();
}

// Nearly every number of a trace: digits that cannot overflow.
bool read_short_integer(std::string_view text, JsonLineValue& out) {
  constexpr std::size_t kSafeDigits = 18;
  const bool is_negative = text.starts_with('-');
  const std::string_view digits = text.substr(is_negative ? 1 : 0);
  if (digits.empty() || digits.size() > kSafeDigits) return false;
  if (digits.front() == '0' && digits.size() > 1) return false;
  std::int64_t value = 0;
  for (const char c : digits) {
    const unsigned digit = static_cast<unsigned char>(c) - unsigned{'0'};
    if (digit > 9) return false;
    value = value * 10 + digit;
  }
  out.kind = JsonLineKind::integer;
  out.text = text;
  out.integer = is_negative ? -value : value;
  out.number = static_cast<double>(out.integer);
  return true;
}

// from_chars has one error for a number too large and one too small.
double beyond_range(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  const bool is_fraction = text.substr(is_negative ? 1 : 0).starts_with("0.");
  const std::size_t exponent = text.find_first_of("eE");
  const bool is_small =
      exponent == std::string_view::npos ? is_fraction : text.substr(exponent + 1).starts_with('-');
  const double size = is_small ? 0.0 : std::numeric_limits<double>::infinity();
  return is_negative ? -size : size;
}

}  // namespace

bool read_json_number(std::string_view text, JsonLineValue& out) {
  if (read_short_integer(text, out)) return true;
  if (!is_json_number(text)) return false;
  const char* end = text.data() + text.size();
  out.text = text;
  const auto whole = std::from_chars(text.data(), end, out.integer);
  if (whole.ptr == end && whole.ec == std::errc()) {
    out.kind = JsonLineKind::integer;
    out.number = static_cast<double>(out.integer);
    return true;
  }
  out.kind = JsonLineKind::number;
  const auto real = std::from_chars(text.data(), end, out.number);
  if (real.ec == std::errc::result_out_of_range) out.number = beyond_range(text);
  return true;
}

}  // namespace zeroproof
