#include "props/train/case_shrink.h"

#include <cstdlib>
#include <utility>

#include "props/train/case_fields.h"

namespace zeroproof::train {
namespace {

class Simpler {
 public:
  explicit Simpler(const CaseSpec& spec) : spec_(spec) {}

  std::vector<CaseSpec> all() {
    drop_windows();
    lower_ranks();
    drop_calls();
    drop_layers();
    drop_accumulation();
    drop_interrupts();
    simplify([](CaseSpec& spec) -> CaseSpec& { return spec; });
    for (std::size_t i = 0; i < spec_.micros.size(); ++i)
      simplify([i](CaseSpec& spec) -> MicroSpec& { return spec.micros[i]; });
    for (std::size_t i = 0; i < spec_.calls.size(); ++i)
      simplify([i](CaseSpec& spec) -> CallSpec& { return spec.calls[i]; });
    for (std::size_t i = 0; i < spec_.layers.size(); ++i)
      simplify([i](CaseSpec& spec) -> LayerSpec& { return spec.layers[i]; });
    return std::move(found_);
  }

 private:
  template <class Change>
  void add(Change change) {
    CaseSpec simpler = spec_;
    change(simpler);
    if (why_invalid(simpler).empty()) found_.push_back(std::move(simpler));
  }

  void drop_windows() {
    const auto size = static_cast<std::ptrdiff_t>(spec_.accumulation);
    for (int window = 0; spec_.windows() > 1 && window < spec_.windows(); ++window)
      add([&](CaseSpec& spec) {
        const auto first = spec.micros.begin() + window * size;
        spec.micros.erase(first, first + size);
      });
  }

  void lower_ranks() {
    if (spec_.sequence > 1) add([](CaseSpec& spec) { spec.sequence = 1; });
    if (spec_.tensor > 1)
      add([&](CaseSpec& spec) {
        spec.tensor = 1;
        for (MicroSpec& micro : spec.micros)
          if (micro.overflow_rank >= spec.ranks) micro.overflow_rank = 0;
      });
    for (int ranks = 1; ranks < spec_.ranks; ++ranks)
      add([&](CaseSpec& spec) {
        spec.ranks = ranks;
        for (MicroSpec& micro : spec.micros)
          if (micro.overflow_rank >= spec.world_size()) micro.overflow_rank = 0;
      });
  }

  void drop_calls() {
    for (std::size_t i = 0; spec_.calls.size() > 1 && i < spec_.calls.size(); ++i)
      add([&](CaseSpec& spec) {
        spec.calls.erase(spec.calls.begin() + static_cast<std::ptrdiff_t>(i));
        const auto without = [&](int& number) {  // counts from 1
          if (number == static_cast<int>(i) + 1) number = 0;
          if (number > static_cast<int>(i) + 1) --number;
        };
        for (MicroSpec& micro : spec.micros) {
          without(micro.skips);
          without(micro.aborts);
          without(micro.overflow);
          without(micro.interrupt_at);
          if (micro.interrupt_at == 0) micro.interrupt = 0;
        }
      });
  }

  void drop_layers() {
    for (std::size_t i = 0; spec_.layers.size() > 1 && i < spec_.layers.size(); ++i)
      add([&](CaseSpec& spec) {
        spec.layers.erase(spec.layers.begin() + static_cast<std::ptrdiff_t>(i));
        for (CallSpec& call : spec.calls)
          if (call.layer >= static_cast<int>(i) && call.layer > 0) --call.layer;
        if (spec.reads > static_cast<int>(i) && spec.reads > 1) --spec.reads;
        if (spec.returns > static_cast<int>(i) && spec.returns > 1) --spec.returns;
        for (MicroSpec& micro : spec.micros)
          if (micro.throws > static_cast<int>(i) && micro.throws > 1) --micro.throws;
      });
  }

  void drop_interrupts() {
    for (std::size_t i = 0; i < spec_.micros.size(); ++i)
      if (spec_.micros[i].interrupt != 0)
        add([&](CaseSpec& spec) { spec.micros[i].interrupt = spec.micros[i].interrupt_at = 0; });
    for (std::size_t i = 0; i < spec_.micros.size(); ++i)
      if (spec_.micros[i].shortage != 0)
        add([&](CaseSpec& spec) { spec.micros[i].shortage = spec.micros[i].shortage_at = 0; });
  }

  // The last micro-batch of each window alone.
  void drop_accumulation() {
    if (spec_.accumulation == 1) return;
    add([&](CaseSpec& spec) {
      std::vector<MicroSpec> kept;
      for (std::size_t i = 0; i < spec.micros.size(); ++i)
        if (const auto size = static_cast<std::size_t>(spec.accumulation); (i + 1) % size == 0) {
          kept.push_back(spec.micros[i]);
          kept.back().restores = spec.micros[i + 1 - size].restores;
        }
      spec.micros = std::move(kept);
      spec.accumulation = 1;
      spec.is_unmanaged = 0;
    });
    if (spec_.accumulation == 4)
      add([](CaseSpec& spec) {
        std::vector<MicroSpec> kept;
        for (std::size_t i = 0; i < spec.micros.size(); ++i)
          if (i % 4 >= 2) kept.push_back(spec.micros[i]);
        spec.micros = std::move(kept);
        spec.accumulation = 2;
      });
  }

  // Every number at its simple value; and one nearer to it.
  template <class PartOf>
  void simplify(PartOf part_of) {
    CaseSpec original = spec_;
    int place = 0;
    visit_fields(part_of(original), [&](const char*, int& value, int simple) {
      const int at = place++;
      if (value == simple) return;
      set(part_of, at, simple);
      const int nearer = value > simple ? value - 1 : value + 1;
      if (nearer != simple && std::abs(value - simple) < kNear) set(part_of, at, nearer);
    });
  }

  template <class PartOf>
  void set(PartOf part_of, int place, int to) {
    add([&](CaseSpec& spec) {
      int at = 0;
      visit_fields(part_of(spec), [&](const char*, int& value, int) {
        if (at++ == place) value = to;
      });
    });
  }

  static constexpr int kNear = 10;

  const CaseSpec& spec_;
  std::vector<CaseSpec> found_;
};

}  // namespace

std::vector<CaseSpec> simpler_cases(const CaseSpec& spec) {
  return Simpler(spec).all();
}

}  // namespace zeroproof::train
