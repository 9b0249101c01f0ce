#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "props/report/picture/picture.h"

namespace zeroproof {

// A picture in the making: tracks appear as they are needed, and hand out free rows. Private to
// PictureBuilder and PictureSpans.
class PictureDraft {
 public:
  Picture picture;

  std::uint32_t intern(std::string text);

  // The track of a process with this kind and number.
  std::uint32_t track(std::uint32_t process, PictureTrackKind kind, std::int64_t number,
                      const std::string& name);

  // The lowest row of the track that has no open bar; end_bar() gives it back.
  std::uint32_t free_row(std::uint32_t track);

  // A bar that begins with the event, has its category, and no end yet.
  std::uint32_t add_bar(std::uint32_t begin, std::uint32_t track, std::uint32_t row,
                        const std::string& label);
  void end_bar(std::uint32_t bar, std::uint32_t end);

  // Threads by number, then what happens beside them.
  void sort_tracks();

 private:
  using TrackKey = std::tuple<std::uint32_t, PictureTrackKind, std::int64_t>;

  std::map<std::string, std::uint32_t> strings_;
  std::map<TrackKey, std::uint32_t> tracks_;
  std::vector<std::vector<bool>> is_taken_;  // by track and row
};

}  // namespace zeroproof
