#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeroproof/model/event_kind.h"
#include "zeroproof/model/ids.h"

namespace zeroproof {

// What an event is about: colours, the legend and the filter of a picture.
enum class PictureCategory : std::uint8_t {
  forward,
  graph_task,
  node,
  recompute,
  hook,
  boundary,  // prologue and epilogue, and the callbacks that run them
  bucket,
  collective,
  gather,  // and release
  manager,
  step,
  transform,
  other,
};
inline constexpr std::size_t kPictureCategories = 13;

// "prologue, epilogue". The view is static.
std::string_view picture_category_name(PictureCategory category);

// A group of lanes: the events of one rank in one source.
struct PictureProcess {
  std::string title;                                       // "rank 0"
  std::vector<std::pair<std::string, std::string>> facts;  // key and value, in order
  std::string run;                                         // collectives of one run belong together
  std::size_t source = 0;                                  // number of the trace or schedule
  std::int32_t rank = 0;
};

enum class PictureTrackKind : std::uint8_t { thread, collectives, gathers, buckets };

struct PictureTrack {
  std::uint32_t process = 0;
  PictureTrackKind kind = PictureTrackKind::thread;
  std::string name;         // "MainThread", "collectives of world"
  std::int64_t number = 0;  // orders tracks of one kind
  std::uint32_t rows = 0;   // shapes of one row do not overlap
};

// Events of one process stand in order; those of several follow one another by process.
struct PictureEvent {
  std::uint32_t process = 0;
  std::uint32_t track = 0;  // of its thread
  std::uint32_t row = 0;
  std::int32_t thread = 0;
  std::int32_t depth = 0;  // open backward calls
  bool is_detail = false;  // bookkeeping that a short form leaves out
  bool is_moment = false;  // drawn by itself; others begin or end a bar of their thread
  PictureCategory category = PictureCategory::other;
  std::uint64_t lc = 0;
  std::int64_t time_ns = 0;
  std::uint64_t tick = 0;   // see order_picture()
  std::uint32_t kind = 0;   // index into strings
  std::uint32_t words = 0;  // the same
  std::string fields;       // all others, as a JSON object
};

struct PictureBar {
  std::uint32_t begin = 0;  // events
  std::uint32_t end = 0;
  std::uint32_t track = 0;
  std::uint32_t row = 0;
  PictureCategory category = PictureCategory::other;
  std::uint32_t label = 0;  // index into strings
  std::int64_t peer = -1;   // bars of equal numbers are one collective
  bool is_open = false;     // its end is not there
  bool is_faint = false;    // a parameter that is merely resident
};

struct PictureFinding {
  std::int64_t event = -1;  // -1: of no event that is shown
  std::string number;       // P7
  std::string id;
  std::string statement;  // what the rule demands; may be empty
  std::string text;
  std::string where;  // "rank 0"
  bool is_latent = false;
};

// Runs as lanes: what every drawn form of a trace or finding is made from. Plain data.
struct Picture {
  std::string title;
  std::string note;       // one line below it
  std::string source;     // the program that ran, as lines of text; may be empty
  std::string good;       // the verdict when there is no finding: "no rule broken"
  std::string reproduce;  // a command; may be empty
  std::vector<std::string> strings;
  std::vector<PictureProcess> processes;
  std::vector<PictureTrack> tracks;
  std::vector<PictureEvent> events;
  std::vector<PictureBar> bars;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> links;  // events: cause, effect
  std::vector<PictureFinding> findings;
  bool has_time = false;  // times of a clock, not of a simulation
};

}  // namespace zeroproof
