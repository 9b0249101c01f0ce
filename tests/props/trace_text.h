#pragma once

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "props/replay/diagnose.h"
#include "props/replay/replay.h"
#include "tests/scratch_path.h"

namespace zeroproof {

// A hooktrace of one rank, written line by line; clocks count up by themselves.
class TraceText {
 public:
  TraceText(int rank, int world, std::string_view producer = "\"torch\":\"2.11\"",
            std::string_view more = "") {
    text_ = fmt::format(
        "{{\"rec\":\"header\",\"format\":\"hooktrace\",\"version\":[1,0],\"rank\":{},\"world\":{},"
        "\"clock\":{{\"unit\":\"ns\",\"mono0\":0,\"unix0\":0}},\"producer\":{{{}}},\"program\":"
        "\"job\"{}}}\n",
        rank, world, producer, more);
    rank_ = rank;
  }

  TraceText& record(std::string_view line) {
    text_ += fmt::format("{}\n", line);
    ++records_;
    return *this;
  }
  TraceText& param(std::string_view name, int elements = 4) {
    return record(
        fmt::format("{{\"rec\":\"param\",\"id\":0,\"name\":\"{}\",\"shape\":[{}],\"dtype\":"
                    "\"float32\"}}",
                    name, elements));
  }
  // `fields`: what follows the common ones, with a comma before.
  TraceText& event(std::string_view kind, int task, std::string_view fields = "") {
    ++events_;
    return record(
        fmt::format("{{\"rec\":\"ev\",\"lc\":{},\"t\":{},\"r\":{},\"th\":0,\"k\":\"{}\",\"gt\":{},"
                    "\"d\":0{}}}",
                    events_, events_, rank_, kind, task, fields));
  }
  TraceText& begin(int task, std::string_view more = "") {
    return event("gt.begin", task, fmt::format(",\"call\":{}{}", task, more));
  }
  TraceText& end(int task, std::string_view more = "") {
    return event("gt.end", task, fmt::format(",\"call\":{}{}", task, more));
  }
  TraceText& accumulate(int task, std::string_view param) {
    return event("param.post_acc", task, fmt::format(",\"param\":\"{}\"", param));
  }
  TraceText& bucket(int task, int index, std::string_view params, bool is_last) {
    return event("bucket.ready", task,
                 fmt::format(",\"index\":{},\"bytes\":16,\"params\":[{}],\"last\":{}", index,
                             params, is_last));
  }
  TraceText& collective(int number, std::string_view op, int bytes, std::string_view param,
                        bool completes = true) {
    const std::string key = fmt::format(
        ",\"op\":\"{}\",\"cseq\":{},\"group\":\"world\",\"key\":\"world:{}\"", op, number, number);
    event("coll.issue", -1,
          fmt::format("{},\"bytes\":{},\"async\":false,\"params\":[\"{}\"]", key, bytes, param));
    return completes ? event("coll.complete", -1, key) : *this;
  }

  // The whole text; without its end the process died.
  std::string text(bool is_complete = true) const {
    return text_ + (is_complete ? fmt::format("{{\"rec\":\"end\",\"events\":{},\"records\":{}}}\n",
                                              events_, records_)
                                : "");
  }

 private:
  std::string text_;
  int rank_ = 0;
  int events_ = 0;
  int records_ = 0;
};

// The texts as files, one a rank.
inline std::vector<std::string> written(const std::vector<std::string>& texts) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at < texts.size(); ++at) {
    paths.push_back(scratch_path(fmt::format("rank{}.jsonl", at)));
    std::ofstream(paths.back(), std::ios::binary) << texts[at];
  }
  return paths;
}

// The report about these texts together.
inline ReplayReport replayed(const std::vector<std::string>& texts) {
  Replay replay({.has_story = true});
  for (const std::string& path : written(texts)) (void)replay.add(path);
  return replay.finish();
}

// What replay says about these files together.
inline std::vector<Diagnosis> diagnosis_of(const std::vector<std::string>& paths) {
  Replay replay({.has_story = true});
  for (const std::string& path : paths) (void)replay.add(path);
  return diagnose(replay.finish());
}

inline std::vector<Diagnosis> diagnosis_of_texts(const std::vector<std::string>& texts) {
  return diagnosis_of(written(texts));
}

inline std::vector<std::string> kinds_of(const std::vector<Diagnosis>& all) {
  std::vector<std::string> kinds;
  for (const Diagnosis& one : all) kinds.push_back(one.kind);
  return kinds;
}

}  // namespace zeroproof
