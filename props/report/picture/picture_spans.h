#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "props/report/picture/picture_draft.h"
#include "props/report/picture/picture_order.h"
#include "zeroproof/internal/model/names.h"
#include "zeroproof/model/event.h"

namespace zeroproof {

// The collectives of all processes, by run, group and number.
class PictureCollectives {
 public:
  std::size_t find(const std::string& run, NameId group, std::int64_t number);
  PictureCollective& at(std::size_t index) { return all_[index]; }
  const std::vector<PictureCollective>& all() const { return all_; }

 private:
  std::map<std::tuple<std::string, NameId, std::int64_t>, std::size_t> index_;
  std::vector<PictureCollective> all_;
};

// What goes on beside the threads of one process: collectives in flight, gathered parameters,
// buckets that fill. Private to PictureBuilder.
class PictureSpans {
 public:
  explicit PictureSpans(std::uint32_t process) : process_(process) {}

  // `id`: of the event in the draft.
  void add(const HookEvent& event, std::uint32_t id, const NameTable& names, PictureDraft& draft,
           PictureCollectives& collectives);

  // What has no end reaches to this event.
  void leave_open(std::uint32_t last, PictureDraft& draft);

 private:
  struct Bucket {
    std::uint32_t bar = 0;
    std::uint64_t params = 0;
    std::int64_t numel = 0;
  };

  void issue(const HookEvent& event, std::uint32_t id, const NameTable& names, PictureDraft& draft,
             std::size_t peer);
  void complete(const HookEvent& event, std::uint32_t id, PictureDraft& draft);
  void begin_gather(NameId param, std::uint32_t id, const NameTable& names, PictureDraft& draft);
  void end_gather(NameId param, std::uint32_t id, const NameTable& names, PictureDraft& draft);
  void release(NameId param, std::uint32_t id, PictureDraft& draft);
  void fill_bucket(const HookEvent& event, std::uint32_t id, PictureDraft& draft);
  void flush_bucket(const HookEvent& event, std::uint32_t id, PictureDraft& draft);

  std::uint32_t process_;
  std::map<std::pair<NameId, std::int64_t>, std::uint32_t> collectives_;  // open bars
  std::map<NameId, std::uint32_t> gathers_;                               // bars in flight
  std::map<NameId, std::uint32_t> residents_;            // bars of what is gathered
  std::map<std::pair<NameId, NameId>, Bucket> buckets_;  // by dtype and group
};

}  // namespace zeroproof
