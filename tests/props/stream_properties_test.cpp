// Races between streams: found when a wait is missing, in whatever order the work ran.
#include "props/stream_properties.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "zeroproof/internal/model/tensor_impl.h"

namespace zeroproof {
namespace {

constexpr StreamId kCompute{0};
constexpr StreamId kReduction{1};
constexpr StreamId kSecondProducer{2};

TensorImpl whole(std::int64_t elements) {
  TensorImpl tensor;
  tensor.storage = std::make_shared<Storage>();
  tensor.sizes = {elements};
  tensor.strides = {1};
  return tensor;
}

// Writes what an overlapping engine does in one line a call.
class Program {
 public:
  void write(StreamId stream, std::int64_t begin = 0, std::int64_t elements = 8) {
    check.on_access({{&bucket, begin, elements}, stream, true});
  }
  void read(StreamId stream, std::int64_t begin = 0, std::int64_t elements = 8) {
    check.on_access({{&bucket, begin, elements}, stream, false});
  }
  StreamEvent record(StreamId stream) {
    const StreamEvent event{next_event_++};
    check.on_record(stream, event);
    return event;
  }
  void wait(StreamId stream, StreamId other) { check.on_wait(stream, record(other)); }

  Status status(std::size_t property) const { return check.verdicts().at(property).status; }
  const Finding& finding(std::size_t property) const {
    verdict_ = check.verdicts().at(property);
    return verdict_.findings.at(0);
  }

  StreamOrderCheck check;
  TensorImpl bucket = whole(8);

 private:
  std::int64_t next_event_ = 0;
  mutable Verdict verdict_;
};

constexpr std::size_t kP46 = 0;
constexpr std::size_t kP47 = 1;
constexpr std::size_t kP48 = 2;

// One bucket: two producers write, the reduction reads, then the bucket is filled again.
Status run_bucket(Program& program, bool waits_for_second, bool reuse_waits, std::size_t property) {
  program.write(kCompute, 0, 4);
  program.write(kSecondProducer, 4, 4);
  program.wait(kReduction, kCompute);
  if (waits_for_second) program.wait(kReduction, kSecondProducer);
  program.read(kReduction);
  if (reuse_waits) program.wait(kCompute, kReduction);
  program.write(kCompute, 0, 4);
  return program.status(property);
}

TEST(StreamOrderCheck, Holds_when_every_wait_is_there) {
  Program program;
  EXPECT_EQ(run_bucket(program, true, true, kP46), Status::held);
  EXPECT_EQ(program.status(kP47), Status::held);
  EXPECT_EQ(program.status(kP48), Status::not_applicable);
}

TEST(StreamOrderCheck, Finds_a_reduction_that_waits_for_one_of_two_producers) {
  Program program;
  program.check.name(program.bucket, "ipg buffer 0");
  EXPECT_EQ(run_bucket(program, false, true, kP46), Status::falsified);
  EXPECT_EQ(program.status(kP47), Status::held);
  const std::string& text = program.finding(kP46).text;
  EXPECT_NE(text.find("access 2 (write of elements 4 to 7 on stream 2) of ipg buffer 0"),
            std::string::npos)
      << text;
}

TEST(StreamOrderCheck, Finds_a_bucket_that_is_filled_again_too_early) {
  Program program;
  EXPECT_EQ(run_bucket(program, true, false, kP47), Status::falsified);
  EXPECT_EQ(program.status(kP46), Status::held);
}

// H19: the current stream waits for the reduction, the other producer does not.
TEST(StreamOrderCheck, Finds_the_reuse_by_a_producer_that_did_not_wait) {
  Program program;
  run_bucket(program, true, true, kP47);
  program.write(kSecondProducer, 4, 4);
  EXPECT_EQ(program.status(kP47), Status::falsified);
}

TEST(StreamOrderCheck, Lets_reads_and_separate_parts_overlap) {
  Program program;
  program.read(kCompute);
  program.read(kReduction);
  program.check.on_record_use(kReduction, program.bucket);
  EXPECT_EQ(program.status(kP46), Status::held);
  Program parts;
  parts.write(kCompute, 0, 4);
  parts.write(kReduction, 4, 4);
  EXPECT_EQ(parts.status(kP47), Status::held);
}

TEST(StreamOrderCheck, Takes_a_host_wait_for_all_that_is_queued_later) {
  Program program;
  program.write(kReduction);
  program.check.on_host_wait(program.record(kReduction));
  program.read(kSecondProducer);
  EXPECT_EQ(program.status(kP46), Status::held);
}

TEST(StreamOrderCheck, Does_not_take_an_event_from_before_the_write) {
  Program program;
  const StreamEvent early = program.record(kCompute);
  program.write(kCompute);
  program.check.on_wait(kReduction, early);
  program.read(kReduction);
  EXPECT_EQ(program.status(kP46), Status::falsified);
}

TEST(StreamOrderCheck, Finds_memory_that_is_freed_while_another_stream_uses_it) {
  Program freed;
  freed.write(kCompute);
  freed.wait(kReduction, kCompute);
  freed.read(kReduction);
  freed.check.on_free(*freed.bucket.storage);
  EXPECT_EQ(freed.status(kP48), Status::falsified);

  Program recorded;
  recorded.read(kReduction);
  recorded.check.on_record_use(kReduction, recorded.bucket);
  recorded.check.on_free(*recorded.bucket.storage);
  EXPECT_EQ(recorded.status(kP48), Status::held);

  Program waited;
  waited.read(kReduction);
  waited.wait(kCompute, kReduction);
  waited.check.on_free(*waited.bucket.storage);
  EXPECT_EQ(waited.status(kP48), Status::held);
}

TEST(StreamOrderCheck, Finds_memory_that_went_unannounced_while_another_stream_uses_it) {
  for (const bool is_recorded : {false, true}) {
    Program program;
    program.write(kCompute);
    program.wait(kReduction, kCompute);
    program.read(kReduction);
    if (is_recorded) program.check.on_record_use(kReduction, program.bucket);
    program.bucket = whole(8);
    program.check.finish();
    EXPECT_EQ(program.status(kP48), is_recorded ? Status::held : Status::falsified);
  }
}

TEST(StreamOrderCheck, Sees_a_view_as_a_part_of_its_storage) {
  Program program;
  program.write(kCompute);
  TensorImpl view = whole(4);
  view.storage = program.bucket.storage;
  view.is_view = true;
  view.offset_elements = 4;
  program.check.on_access({{&view, 0, 4}, kReduction, false});
  EXPECT_EQ(program.status(kP46), Status::falsified);
}

TEST(StreamOrderCheck, Forgets_what_was_at_an_address_before) {
  Program program;
  program.write(kReduction);
  program.check.on_record_use(kReduction, program.bucket);
  program.check.on_free(*program.bucket.storage);
  program.write(kCompute);
  EXPECT_EQ(program.status(kP47), Status::held);
}

// Writers in any sequence of streams, each ordered after the one before it by a wait. The chain
// is right; without one of its waits between two streams it is not.
RC_GTEST_PROP(StreamOrderCheck, Finds_any_one_missing_wait, ()) {
  const auto streams = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange<std::int32_t>(0, 4)));
  const auto missing = *rc::gen::inRange<std::size_t>(0, streams.size());
  const auto run = [&](std::size_t without) {
    Program program;
    for (std::size_t i = 0; i < streams.size(); ++i) {
      if (i > 0 && i != without) program.wait(StreamId{streams[i]}, StreamId{streams[i - 1]});
      program.write(StreamId{streams[i]});
    }
    return program.status(kP47);
  };
  RC_ASSERT(run(0) == Status::held);
  const bool is_needed = missing > 0 && streams[missing] != streams[missing - 1];
  RC_ASSERT((run(missing) == Status::falsified) == is_needed);
}

}  // namespace
}  // namespace zeroproof
