// tests/unit/v1/zero/test_overlap_comm_record_stream.py: streams of stages 1 and 2 with overlap.
#include <algorithm>
#include <map>
#include <set>

#include "engine/zero/ipg_bucket.h"
#include "tests/peer/support/training.h"

namespace zeroproof::peer {
namespace {

// Who waited for whom, whose use was recorded where, and what each stream touched.
class StreamSpy final : public AccessObserver {
 public:
  void on_access(const Access& access) override {
    touched[access.stream].insert(access.span.tensor->storage.get());
  }
  void on_record(StreamId stream, StreamEvent event) override { owners_[event] = stream; }
  void on_wait(StreamId stream, StreamEvent event) override {
    waits[stream].insert(owners_[event]);
  }
  void on_host_wait(StreamEvent) override {}
  void on_record_use(StreamId stream, const TensorImpl& tensor) override {
    recorded[stream].insert(tensor.storage.get());
  }
  void on_free(const Storage&) override {}

  std::map<StreamId, std::set<StreamId>> waits;
  std::map<StreamId, std::set<const Storage*>> recorded;
  std::map<StreamId, std::set<const Storage*>> touched;

 private:
  std::map<StreamEvent, StreamId> owners_;
};

ZeroConfig overlap_config() {
  ZeroConfig config = base_config(2);
  config.overlap_comm = true;
  return config;
}

// One forward and backward of a stack of two layers on each of two ranks.
struct Spied {
  std::vector<StreamSpy> spies = std::vector<StreamSpy>(2);
  std::vector<StreamId> reduction = std::vector<StreamId>(2);
  std::vector<std::set<std::string>> copied = std::vector<std::set<std::string>>(2);
  std::vector<std::size_t> uses = std::vector<std::size_t>(2);
};

void run_spied(const Twin& twin, const ZeroConfig& config, Spied& spied,
               const NetMaker& make = make_stack({})) {
  on_ranks({.ranks = 2, .accesses = {&spied.spies[0], &spied.spies[1]}}, twin, [&](Rank& rank) {
    const auto index = static_cast<std::size_t>(rank.rank());
    Engined engine = rank.engine(make, config);
    spied.reduction[index] = rank.runtime.stream(StreamRole::reduction).id();
    spied.spies[index].recorded.clear();
    run_engine(rank, engine, {}, {rank.rank(), 0, 0});
    spied.uses[index] = spied.spies[index].recorded[spied.reduction[index]].size();
    for (const HookEvent& event : rank.recording.events)
      if (event.kind == EventKind::engine_call &&
          rank.recording.names.text(event.name) == "z12.copy_grads_in_partition")
        spied.copied[index].insert(std::string(rank.recording.names.text(event.param)));
    Ddp ddp(make, {});
    run_reference(ddp, {}, config, {0, 0, 0});
    require_equal(engine->full_gradients(), ddp.gradients(), tolerance_of(DType::float32),
                  "gradients");
  });
}

}  // namespace

// What the reduction stream reads and its owner may free: the gradients themselves, where they
// are not copied into a bucket, and the copies in the communication dtype.
PEER_ROW(test_overlap_comm_record_stream, test_allreduce_and_copy_records_stream_for_overlap_comm) {
  const bool has_overlap = !twin.has_fault("no overlap");
  Spied gradients;
  ZeroConfig config = overlap_config();
  config.overlap_comm = has_overlap;
  config.contiguous_gradients = false;
  run_spied(twin, config, gradients);
  Spied copies;
  config.contiguous_gradients = true;
  config.communication_data_type = DType::float64;
  config.reduce_scatter = false;
  run_spied(twin, config, copies);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    // The sum that the bucket went to is given back, too; storages may share an address.
    require(gradients.uses[rank] >= 4, "each of four gradients is recorded");
    require(copies.uses[rank] >= 1, "the copies on the wire are recorded");
  }
}

namespace {

// Layers of width 2 without bias: four elements each, so that each rank owns one of the two.
NetMaker make_two_layers(std::int64_t second) {
  return [second]() -> ModulePtr {
    return std::make_shared<Net>(
        Net::Parts{.children = {{"a", linear_layer(2, 2, 1, false)},
                                {"b", linear_layer(2, second, 2, false)}}},
        [](Autograd& ag, const Net& net, const TensorList& in) -> TensorList {
          const Tensor x = narrow(ag, in.at(0), 1, {0, 2});
          return {mean(ag, sq(ag, net.call(ag, "b", tanh(ag, net.call(ag, "a", x)))))};
        });
  };
}

void copies_owned_alone(const Twin& twin, std::int64_t second,
                        const std::vector<std::set<std::string>>& expected) {
  for (const bool is_one_collective : {true, false}) {
    Spied spied;
    ZeroConfig config = overlap_config();
    config.use_multi_rank_bucket_allreduce = is_one_collective;
    run_spied(twin, config, spied, make_two_layers(second));
    for (std::size_t rank = 0; rank < 2; ++rank)
      require(spied.copied[rank] == expected[rank], "rank copies what it owns");
  }
}

}  // namespace

PEER_ROW(test_overlap_comm_record_stream,
         test_allreduce_and_copy_with_multiple_ranks_records_only_local_buffers) {
  copies_owned_alone(twin, twin.has_fault("another owner") ? 6 : 2, {{"a.weight"}, {"b.weight"}});
}

// A parameter that both own: rank 0 has the first layer's four elements and two of the second's.
PEER_ROW(test_overlap_comm_record_stream,
         test_allreduce_and_copy_with_multiple_ranks_records_consumer_buffers) {
  copies_owned_alone(twin, twin.has_fault("another owner") ? 2 : 4,
                     {{"a.weight", "b.weight"}, {"b.weight"}});
}

namespace {

// A bucket by itself, on a device with streams; `fill` gets it when it is set up.
void with_bucket(const Twin& twin,
                 const std::function<void(Rank&, Engined&, IpgBucket&, StreamSpy&)>& body) {
  StreamSpy spy;
  on_ranks({.ranks = 1, .accesses = {&spy}, .device = Device::cuda(0)}, twin, [&](Rank& rank) {
    Engined engine = rank.engine(make_stack({}), overlap_config());
    IpgBucket bucket(engine.core().context(), DType::float32, 100);
    bucket.set_up();
    spy.waits.clear();
    body(rank, engine, bucket, spy);
  });
}

void append_on(Rank& rank, Engined& engine, IpgBucket& bucket, StreamIndex stream,
               std::size_t parameter) {
  const StreamIndex before = rank.ag.set_current_stream(Device::cuda(0), stream);
  ZeroParameter& into = engine.core().context().parameters[parameter];
  bucket.append(into, Tensor::full(into.sizes, 1.0, DType::float32));
  rank.ag.set_current_stream(Device::cuda(0), before);
}

std::set<StreamId> streams(Rank& rank, const std::vector<StreamIndex>& indices) {
  std::set<StreamId> ids;
  for (const StreamIndex index : indices) ids.insert(rank.runtime.user_stream(index).id());
  return ids;
}

}  // namespace

PEER_ROW(test_overlap_comm_record_stream,
         test_average_tensor_waits_on_all_ipg_bucket_producer_streams) {
  with_bucket(twin, [&](Rank& rank, Engined& engine, IpgBucket& bucket, StreamSpy& spy) {
    append_on(rank, engine, bucket, 1, 0);
    append_on(rank, engine, bucket, twin.has_fault("one producer") ? 1 : 2, 1);
    append_on(rank, engine, bucket, 1, 2);
    bucket.order_before_reduction();
    require(spy.waits[rank.runtime.stream(StreamRole::reduction).id()] == streams(rank, {1, 2}),
            "the reduction waits for both producers");
  });
}

PEER_ROW(test_overlap_comm_record_stream,
         test_average_tensor_falls_back_to_current_stream_without_producers) {
  with_bucket(twin, [&](Rank& rank, Engined& engine, IpgBucket& bucket, StreamSpy& spy) {
    if (twin.has_fault("a producer")) append_on(rank, engine, bucket, 1, 0);
    const StreamIndex before = rank.ag.set_current_stream(Device::cuda(0), 3);
    bucket.order_before_reduction();
    rank.ag.set_current_stream(Device::cuda(0), before);
    require(spy.waits[rank.runtime.stream(StreamRole::reduction).id()] == streams(rank, {3}),
            "the reduction waits for the current stream");
  });
}

PEER_ROW(test_overlap_comm_record_stream, test_ipg_bucket_clear_resets_copy_streams) {
  with_bucket(twin, [&](Rank& rank, Engined& engine, IpgBucket& bucket, StreamSpy& spy) {
    append_on(rank, engine, bucket, 1, 0);
    append_on(rank, engine, bucket, 2, 1);
    if (!twin.has_fault("no clear")) bucket.clear();
    require(bucket.is_empty() && bucket.elements() == 0, "empty");
    append_on(rank, engine, bucket, 4, 2);
    bucket.order_before_reduction();
    require(spy.waits[rank.runtime.stream(StreamRole::reduction).id()] == streams(rank, {4}),
            "former producers are forgotten");
  });
}

}  // namespace zeroproof::peer
