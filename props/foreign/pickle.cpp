#include "props/foreign/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "sim/trace/byte_source.h"

namespace zeroproof {
namespace {

// The opcodes of data (Lib/pickle.py of Python), everything else is refused.
enum Opcode : unsigned char {
  op_mark = '(',
  op_stop = '.',
  op_bin_float = 'G',
  op_bin_int = 'J',
  op_bin_int1 = 'K',
  op_bin_int2 = 'M',
  op_none = 'N',
  op_bin_unicode = 'X',
  op_empty_list = ']',
  op_empty_dict = '}',
  op_empty_tuple = ')',
  op_append = 'a',
  op_appends = 'e',
  op_bin_get = 'h',
  op_long_bin_get = 'j',
  op_bin_put = 'q',
  op_long_bin_put = 'r',
  op_set_item = 's',
  op_tuple = 't',
  op_set_items = 'u',
  op_proto = 0x80,
  op_tuple1 = 0x85,
  op_tuple2 = 0x86,
  op_tuple3 = 0x87,
  op_new_true = 0x88,
  op_new_false = 0x89,
  op_long1 = 0x8a,
  op_short_bin_unicode = 0x8c,
  op_memoize = 0x94,
  op_frame = 0x95,
};

constexpr std::uint64_t kProtocolMax = 5;
constexpr std::size_t kValuesMax = 8'000'000;  // a dump of 2,000 entries has 500,000
constexpr std::size_t kItemsMax = 24'000'000;  // of all lists and dicts, with their room to grow
constexpr std::size_t kStackMax = 24'000'000;
constexpr std::size_t kMarksMax = 1'000'000;  // open at a time
constexpr std::size_t kStepsBetweenStops = 1 << 16;

// Why a well-known opcode is refused.
std::string_view danger(unsigned char opcode) {
  switch (opcode) {
    case 'c':
    case 0x93:
      return " (GLOBAL: it would import a Python object)";
    case 'R':
    case 'i':
    case 'o':
    case 0x81:
    case 0x92:
      return " (it would call a Python object)";
    case 'b':
      return " (BUILD: it would set the state of a Python object)";
    default:
      return "";
  }
}

struct Refused {
  std::string text;
};

class PickleMachine {
 public:
  explicit PickleMachine(std::string_view bytes)
      : bytes_(bytes),
        values_{{},
                {.kind = PickleKind::boolean, .payload = 0},
                {.kind = PickleKind::boolean, .payload = 1}} {}

  PickleDocument run() {
    for (std::size_t steps = 1; !step(); ++steps)
      if (steps % kStepsBetweenStops == 0 && is_read_stopped()) refuse("reading was interrupted");
    const std::uint32_t root = pop();
    return {bytes_, std::move(values_), std::move(pool_), root};
  }

 private:
  [[noreturn]] void refuse(std::string text) const {
    throw Refused{fmt::format("{} at byte {} of the pickle", text, opcode_at_)};
  }

  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) refuse("the pickle ends early");
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }

  std::uint64_t little_endian(std::size_t width) {
    std::uint64_t value = 0;
    const std::string_view taken = take(width);
    for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }

  // True at the end.
  bool step() {
    opcode_at_ = at_;
    const auto opcode = static_cast<unsigned char>(take(1).front());
    if (opcode == op_stop) return true;
    if (push_scalar(opcode) || push_container(opcode) || use_memo(opcode) || fill(opcode))
      return false;
    if (opcode == op_proto) {
      if (const std::uint64_t protocol = little_endian(1); protocol > kProtocolMax)
        refuse(fmt::format("pickle protocol {} is unknown", protocol));
      return false;
    }
    if (opcode == op_frame) {
      little_endian(8);
      return false;
    }
    refuse(fmt::format("opcode 0x{:02x}{} is no data and is refused", opcode, danger(opcode)));
  }

  bool push_scalar(unsigned char opcode) {
    switch (opcode) {
      case op_none:
        push_known(kNoneIndex);
        return true;
      case op_new_true:
        push_known(kTrueIndex);
        return true;
      case op_new_false:
        push_known(kFalseIndex);
        return true;
      case op_bin_int:
        push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(little_endian(4))));
        return true;
      case op_bin_int1:
        push_integer(static_cast<std::int64_t>(little_endian(1)));
        return true;
      case op_bin_int2:
        push_integer(static_cast<std::int64_t>(little_endian(2)));
        return true;
      case op_long1:
        push_integer(long_integer());
        return true;
      case op_bin_float:
        push({.kind = PickleKind::number, .payload = big_endian(8)});
        return true;
      case op_bin_unicode:
        push_text(little_endian(4));
        return true;
      case op_short_bin_unicode:
        push_text(little_endian(1));
        return true;
      default:
        return false;
    }
  }

  void push_integer(std::int64_t value) {
    push({.kind = PickleKind::integer, .payload = static_cast<std::uint64_t>(value)});
  }

  void push_text(std::uint64_t length) {
    const auto begin = static_cast<std::uint64_t>(at_);
    take(length);
    push({.kind = PickleKind::text, .size = static_cast<std::uint32_t>(length), .payload = begin});
  }

  // Two's complement, little endian; 9 bytes hold an unsigned number of 64 bits.
  std::int64_t long_integer() {
    const std::string_view digits = take(little_endian(1));
    if (digits.size() > 8 && !(digits.size() == 9 && digits[8] == 0))
      refuse("an integer does not fit 64 bits");
    std::uint64_t value = !digits.empty() && (digits.back() & 0x80) != 0 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = std::min<std::size_t>(digits.size(), 8); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(digits[i]);
    return static_cast<std::int64_t>(value);
  }

  std::uint64_t big_endian(std::size_t width) {
    std::uint64_t bits = 0;
    for (const char byte : take(width)) bits = bits << 8 | static_cast<unsigned char>(byte);
    return bits;
  }

  bool push_container(unsigned char opcode) {
    switch (opcode) {
      case op_mark:
        if (marks_.size() == kMarksMax) refuse(fmt::format("more than {} open marks", kMarksMax));
        marks_.push_back(stack_.size());
        return true;
      case op_empty_list:
      case op_empty_tuple:
        push({.kind = PickleKind::list});
        return true;
      case op_empty_dict:
        push({.kind = PickleKind::dict});
        return true;
      case op_tuple:
        push_tuple(take_marked());
        return true;
      case op_tuple1:
      case op_tuple2:
      case op_tuple3:
        push_tuple(take_top(1 + static_cast<std::size_t>(opcode - op_tuple1)));
        return true;
      default:
        return false;
    }
  }

  bool use_memo(unsigned char opcode) {
    switch (opcode) {
      case op_bin_put:
        memorize(little_endian(1));
        return true;
      case op_long_bin_put:
        memorize(little_endian(4));
        return true;
      case op_memoize:
        memorize(memo_.size());
        return true;
      case op_bin_get:
        recall(little_endian(1));
        return true;
      case op_long_bin_get:
        recall(little_endian(4));
        return true;
      default:
        return false;
    }
  }

  // The slots are numbered as they are used, with few gaps: a wild number would only cost memory.
  void memorize(std::uint64_t slot) {
    if (slot > std::min(bytes_.size(), kValuesMax))
      refuse(fmt::format("memo slot {} is out of range", slot));
    if (slot >= memo_.size()) memo_.resize(static_cast<std::size_t>(slot) + 1);
    memo_[static_cast<std::size_t>(slot)] = top();
  }

  void recall(std::uint64_t slot) {
    if (slot >= memo_.size() || !memo_[static_cast<std::size_t>(slot)])
      refuse(fmt::format("memo slot {} is empty", slot));
    push_known(*memo_[static_cast<std::size_t>(slot)]);
  }

  bool fill(unsigned char opcode) {
    switch (opcode) {
      case op_append:
        extend(PickleKind::list, take_top(1));
        return true;
      case op_appends:
        extend(PickleKind::list, take_marked());
        return true;
      case op_set_item:
        extend(PickleKind::dict, take_top(2));
        return true;
      case op_set_items:
        extend(PickleKind::dict, take_marked());
        return true;
      default:
        return false;
    }
  }

  void extend(PickleKind kind, const std::vector<std::uint32_t>& added) {
    PickleValue& container = values_[top()];
    if (container.kind != kind) refuse("a value is added to something that cannot hold it");
    if (kind == PickleKind::dict && added.size() % 2 != 0) refuse("a dict lacks a value");
    add_items(container, added);
  }

  // Where the items have no room left they move to the end of the pool, with twice the room.
  void add_items(PickleValue& to, const std::vector<std::uint32_t>& added) {
    if (added.empty()) return;
    const std::uint64_t wanted = to.size + added.size();
    if (to.size == 0 || wanted > std::uint64_t{1} << to.capacity_log2) {
      const auto log2 = static_cast<std::uint8_t>(std::bit_width(wanted - 1));
      const std::size_t begin = pool_.size();
      if (begin + (std::size_t{1} << log2) > kItemsMax)
        refuse(fmt::format("more than {} items, which is the limit,", kItemsMax));
      pool_.resize(begin + (std::size_t{1} << log2));
      std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(to.payload), to.size,
                  pool_.begin() + static_cast<std::ptrdiff_t>(begin));
      to.payload = begin;
      to.capacity_log2 = log2;
    }
    std::ranges::copy(added, pool_.begin() + static_cast<std::ptrdiff_t>(to.payload + to.size));
    to.size = static_cast<std::uint32_t>(wanted);
  }

  void push_tuple(const std::vector<std::uint32_t>& items) {
    push({.kind = PickleKind::list});
    add_items(values_.back(), items);
  }

  void push(const PickleValue& value) {
    if (values_.size() == kValuesMax)
      refuse(fmt::format("more than {} values, which is the limit,", kValuesMax));
    values_.push_back(value);
    push_known(static_cast<std::uint32_t>(values_.size()) - 1);
  }

  void push_known(std::uint32_t index) {
    if (stack_.size() == kStackMax)
      refuse(fmt::format("more than {} values on the stack, which is the limit,", kStackMax));
    stack_.push_back(index);
  }

  // What may be popped lies above the innermost mark.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  std::uint32_t top() const {
    if (stack_.size() <= floor()) refuse("the stack of the pickle is empty");
    return stack_.back();
  }

  std::uint32_t pop() {
    const std::uint32_t value = top();
    stack_.pop_back();
    return value;
  }

  std::vector<std::uint32_t> take_top(std::size_t count) {
    if (stack_.size() < floor() + count) refuse("the stack of the pickle is empty");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<std::uint32_t> taken(first, stack_.end());
    stack_.erase(first, stack_.end());
    return taken;
  }

  std::vector<std::uint32_t> take_marked() {
    if (marks_.empty()) refuse("the pickle closes what it never opened");
    auto taken = take_top(stack_.size() - marks_.back());
    marks_.pop_back();
    return taken;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  static constexpr std::uint32_t kNoneIndex = 0;
  static constexpr std::uint32_t kFalseIndex = 1;
  static constexpr std::uint32_t kTrueIndex = 2;

  std::vector<PickleValue> values_;
  std::vector<std::uint32_t> pool_;
  std::vector<std::uint32_t> stack_;
  std::vector<std::size_t> marks_;
  std::vector<std::optional<std::uint32_t>> memo_;
};

}  // namespace

tl::expected<PickleDocument, std::string> read_pickle(std::string_view bytes) {
  try {
    return PickleMachine(bytes).run();
  } catch (const Refused& refused) {
    return tl::unexpected(refused.text);
  }
}

bool starts_like_pickle(std::string_view bytes) {
  return bytes.size() >= 2 && static_cast<unsigned char>(bytes[0]) == op_proto &&
         static_cast<unsigned char>(bytes[1]) >= 2 &&
         static_cast<unsigned char>(bytes[1]) <= kProtocolMax;
}

}  // namespace zeroproof
