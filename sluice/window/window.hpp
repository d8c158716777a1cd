// A window over a stream: which keys count as seen, by count or by time.
//
//   count     the last n deliveries. A generation ends after every n / generations keys written;
//             with `refreshed`, after as many arrivals, and the window is the last n arrivals.
//   time      the last t. A generation is one tick of t / generations. A key younger than t is
//             inside the window, one of age t + slack or more is outside; in between it may be
//             either. A record that comes late, but inside the window, is written at its own age.
//   landmark  since the last full hour or day: one generation; nothing older counts.
//
// The filter ages its keys (rotate), and Growth adds stages. This class decides when to do so, and
// holds the event clock. It reads no system clock: times come with the records.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/base/counted.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/forecast.hpp"
#include "sluice/filters/short_list.hpp"
#include "sluice/window/clock.hpp"
#include "sluice/window/growth.hpp"
#include "sluice/window/spec.hpp"

namespace sluice {

class Window {
 public:
  static constexpr FilterKind kKind = FilterKind::window;
  static constexpr std::uint16_t kVersion = 1;
  static constexpr FilterPromises kPromises{.fixed_memory = false};
  // The number of keys that a time window without a known rate is first made for. If it starts as a
  // short list, its first table is smaller: for a few times as many keys as a list holds. Both
  // grow.
  static constexpr std::uint64_t kFirstKeys = std::uint64_t{1} << 16;
  static constexpr std::uint64_t kKeysAfterList = std::uint64_t{1} << 10;
  static constexpr std::size_t kMostFilterText = 4096;
  static constexpr const char* kNoMemoryForKey =
      "there is no memory for one key more: free some of the resource, or give it a larger budget";
  // A window whose table takes more than this starts with the table, not as a list; and so does one
  // whose next stage would be far larger than that table. So a large block is never requested in
  // the middle of a stream of few keys, nor by loading a state of a few hundred bytes.
  static constexpr std::uint64_t kMostListedPlan = std::uint64_t{256} << 20;

  struct Params {
    WindowSpec spec;
    Anchor anchor = Anchor::delivered;
    std::string filter = "cohort";  // name and settings of the stages
    double fpr = 1e-6;
    // Time windows: keys expected in a window; it grows if there are more.
    std::optional<std::uint64_t> keys = {};
    std::optional<unsigned> generations = {};  // none: the filter's choice
    // Nanoseconds: a time further ahead of the latest is not believed until a second one agrees
    // (clock.hpp). By default every time is believed.
    std::optional<std::uint64_t> max_ahead = {};
    // Limit in bytes, growth included; none: the limit of its resource.
    std::optional<std::uint64_t> memory = {};
    Growth::By growth = Growth::By::density;
    // It starts as a short list of exact keys, and gets its table when a longer list would be
    // larger.
    bool listed = false;

    Settings settings() const;
    friend bool operator==(const Params&, const Params&) = default;
  };

  // Throws BadParameters, also when the filter is not a window filter.
  static Window make(const Params& params, MemoryResource& memory = default_memory());

  // Describes what make() would make, without making it. For a window that may grow: its first
  // stage, with an error that includes the share reserved for later stages. Throws BadParameters.
  static Forecast forecast(const Params& params, bool brief = false);  // brief: Wish::brief

  // The filter of the stages after the first one, which are as large as the stream needs them: a size that
  // was named is that of the first.
  static std::string successor_text(const Params& params);

  // Judges records with their times, in order. Sets verdicts[i], and late[i] if the time of record
  // i is a window or more behind now: a late record is neither judged nor remembered, and its
  // verdict is `distinct`. A record whose time is not believed (Params::max_ahead) is `distinct`,
  // too, since the age of its key is unknown; it is remembered as of now, and at its own time as
  // soon as a second record agrees. If the first time of all is replaced (clock.hpp), what was
  // remembered is forgotten. Count windows ignore times. Throws BadParameters if the spans differ
  // in length. Returns how many records were judged: all, unless there is no memory for more keys.
  // Then the rest are as if they had not come yet, except that the clock may have advanced to the
  // time of the first of them.
  [[nodiscard]] std::size_t judge(std::span<const Digest> digests,
                                  std::span<const Nanoseconds> times, std::span<Verdict> verdicts,
                                  std::span<bool> late);

  // A second opinion on duplicates. It is called, in order, with the index of each record of the
  // batch whose key the filter judges a duplicate, before the key is written again; its answer is
  // the verdict. It may read the window. It is not called for records that come after their
  // generation has ended: for them the filter's verdict stands. Keys are judged one at a time, so
  // it makes no difference how a stream is cut into batches.
  using SecondOpinion = std::function<Verdict(std::size_t)>;
  [[nodiscard]] std::size_t judge(std::span<const Digest> digests,
                                  std::span<const Nanoseconds> times, std::span<Verdict> verdicts,
                                  std::span<bool> late, const SecondOpinion& opinion);
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts,
                      const SecondOpinion& opinion);

  // What judge() would say about a record with this time; changes nothing.
  Verdict peek(const Digest& digest, Nanoseconds time) const;

  // Sets the time of the records that follow through observe(), by the caller's clock. Count
  // windows ignore it.
  void arrive(Nanoseconds time);

  // The operations of every filter; in a time window they happen now. If there is no memory, the
  // forms for a single key throw NoMemory, and a batch returns less than all.
  Verdict observe(const Digest& digest);
  bool may_contain(const Digest& digest) const noexcept;
  // Why the last key was refused, and what helps: for a NoMemory.
  const char* why_full() const noexcept;
  void insert(const Digest& digest) { observe(digest); }
  std::size_t observe(std::span<const Digest> digests, std::span<Verdict> verdicts);
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts) const;
  std::size_t insert(std::span<const Digest> digests);
  void clear() noexcept;
  // The answer of may_contain after arrive(now), without changing anything.
  bool may_contain(const Digest& digest, Nanoseconds now) const;
  void may_contain(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   Nanoseconds now) const;
  // How old a key is at `now`, or now by its own clock if that is later: in nanoseconds since it was
  // remembered; for a count window, in keys that were remembered after it (with `refreshed`: arrivals).
  // Exact while listed(). A table knows only the generation of a key: then it is the least age of that
  // generation, and the real one is less than generation_size() above it. `timing` and `timer` may
  // say less, where other keys have overwritten a key's cells. After forget_oldest() it may be a
  // generation too much. Nothing: the key is not remembered. Only if knows_ages().
  std::optional<std::uint64_t> age_of(const Digest& digest, Nanoseconds now) const;
  // By its filter, also while listed().
  bool knows_ages() const noexcept;
  static constexpr const char* kFiltersThatKnowAges = "cohort, exact-window, timing and timer";

  // By its filter, also while listed().
  bool can_forget() const noexcept;
  // Only if can_forget().
  bool forget(const Digest& digest) noexcept;

  // For a caller that would rather remember less than stop when `memory` is used up: forgets the
  // keys of the oldest generation before they have left the window, and returns how many there
  // were, or nothing if there is no generation to forget. From then on, until the next generation
  // begins, judge() and observe() also stop after each generation's share of keys, so that a burst
  // within one generation is not forgotten all at once.
  std::optional<std::uint64_t> forget_oldest();
  // Whether it is `memory` that had no room for the last key that was refused, and not the resource.
  bool used_up() const noexcept { return !listed() && growth_->used_up(); }
  std::uint64_t forgotten_early() const noexcept {
    return listed() ? 0 : growth_->forgotten_early();
  }

  // Whether its keys are still in a short list. Verdicts are then exact, and there is no slack.
  bool listed() const noexcept { return growth_ == nullptr; }
  // The most keys of a list: with one more inside the window it becomes a table.
  std::size_t most_listed() const noexcept { return blueprint_->most_listed; }
  // Makes the table now, for a caller that needs to read it. Throws NoMemory; nothing has changed
  // then.
  void make_table();

  const Params& params() const noexcept { return blueprint_->params; }
  const ClockLimits& limits() const noexcept { return blueprint_->limits; }
  FilterStats stats() const;
  std::uint64_t bytes() const noexcept;
  MemoryResource& memory() const noexcept { return list_.memory(); }
  // Must not be called while listed().
  const Growth& growth() const noexcept { return *growth_; }
  std::uint64_t growths() const noexcept { return listed() ? 0 : growth_->growths(); }
  // The filter of its table, or of the table that it will get, and all its parameters.
  std::string_view filter_name() const noexcept;
  Settings filter_settings() const;
  const EventClock& clock() const noexcept { return clock_; }
  unsigned generations() const noexcept { return *params().generations; }
  // The size of a generation, and how much of it has passed at `time`. Count windows: in keys,
  // `time` is ignored; others: in nanoseconds.
  std::uint64_t generation_size() const noexcept { return blueprint_->generation_size; }
  std::uint64_t position(Nanoseconds time) const;
  // How far past the window a key may still be remembered, as a share of the window.
  double slack() const;
  // The peak share of expired keys still remembered, just before a generation ends (NPWS).
  double npws() const;

  void encode_header(Encoder& to) const;
  void encode_payload(Encoder& to) const;
  static Window decode(Decoder& header, Decoder& payload,
                       MemoryResource& memory = default_memory());

 private:
  // What windows with the same parameters share, in resources with the same costs.
  struct Blueprint {
    Params params;  // with the generations filled in
    std::shared_ptr<const Growth::Make> make;
    bool generations_asked;  // false: the filter chose
    Growth::Plan plan;
    ClockLimits limits;
    std::uint64_t generation_size;
    Forecast table;           // the first stage
    std::uint64_t bytes;      // the most that it takes in such a resource
    std::size_t most_listed;  // keys of a list
  };
  static bool next_is_like_first(const Params& params, const Forecast& first);
  static Counted<Blueprint> blueprint_of(const Params& params, const BlockCosts& costs);
  static std::size_t hash_of(const Params& params) noexcept;
  static Counted<Blueprint> find_blueprint(const Params& params, const MemoryResource& memory);
  static Counted<Blueprint> blueprint_of_snapshot(const Params& params,
                                                  const MemoryResource& memory);

  Window(Counted<Blueprint> blueprint, MemoryResource& memory) noexcept
      : blueprint_(std::move(blueprint)), list_(memory) {}
  // Throws NoMemory when that cannot hold its table.
  void check_budget(std::uint64_t budget, const char* help) const;
  std::uint64_t budget_beside_others() const noexcept;
  static std::uint64_t bytes_of_stage(const std::string& filter, std::uint64_t keys, double fpr,
                                      unsigned generations);
  void check_stages_to_come(std::uint64_t payload_bytes) const;
  void check_readable() const;
  Owned<Growth> make_growth() const;
  void start_table();
  std::size_t pace(std::span<const Digest> digests, std::span<Verdict> verdicts);
  std::size_t pace(std::span<const Digest> digests, std::span<Verdict> verdicts,
                   const SecondOpinion& opinion);
  template <class Admit>
  std::size_t judge_times(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                          std::span<Verdict> verdicts, std::span<bool> late, const Admit& admit);
  bool admit_one(const Digest& digest, Verdict& verdict, std::uint64_t& budget, std::size_t record,
                 const SecondOpinion& opinion);
  std::size_t admit_now(std::span<const Digest> digests, std::span<Verdict> verdicts,
                        std::size_t first, const SecondOpinion& opinion);
  void advance_to(std::int64_t tick);
  void read_again(const EventClock& from, std::span<const Digest> digests,
                  std::span<const Nanoseconds> times);
  bool let_through(const Digest& digest);
  bool believe_claimant();
  std::int64_t tick_of(Nanoseconds time) const;
  void set_tick(std::int64_t tick) noexcept { tick_ = tick; }

  // For the time as a list (window_list.cpp).
  void age_list(bool first, Nanoseconds before) noexcept;
  ShortList::Stamp oldest(Nanoseconds now) const noexcept;
  std::optional<std::size_t> find_listed(const Digest& digest, Nanoseconds now) const noexcept;
  void ask_list(std::span<const Digest> digests, std::span<Verdict> verdicts,
                Nanoseconds now) const noexcept;
  static std::size_t most_listed(const Params& params, std::uint64_t table_bytes,
                                 const BlockCosts& costs) noexcept;
  void tidy_list() noexcept;
  bool make_room();
  void grow_list(std::size_t keys);
  void write_list_to_table();
  bool write_listed(const Digest& digest, ShortList::Stamp stamp);
  bool reserve_listed(std::span<const Digest> keys, ShortList::Stamp from,
                      const std::optional<Digest>& believed, ShortList::Stamp claimed);
  std::optional<Verdict> admit_listed(const Digest& digest, Nanoseconds time);
  std::optional<Verdict> judge_listed(const Digest& digest, Nanoseconds time, bool& late);
  std::size_t observe_list(std::span<const Digest> digests, std::span<Verdict> verdicts);
  std::size_t judge_list(std::span<const Digest> digests, std::span<const Nanoseconds> times,
                         std::span<Verdict> verdicts, std::span<bool> late);
  bool forget_listed(const Digest& digest) noexcept;
  FilterStats list_stats() const;
  ShortList::Stamp newest_stamp() const noexcept;
  bool list_is_sound() const noexcept;

  struct Delete {
    void operator()(Growth* growth) const noexcept;
  };

  Counted<Blueprint> blueprint_;
  ShortList list_;  // stamps: the time of each key, or its number in the order of writing
  // Null while it is a list. A pointer, so that a list takes no memory for it.
  std::unique_ptr<Growth, Delete> growth_;
  EventClock clock_;
  std::uint32_t forgotten_ = 0, forget_misses_ = 0;  // while a list
  // Count: keys until the generation ends; while a list: when it was last searched for keys that
  // have left, as a time or as a number of keys.
  std::uint64_t left_ = 0;
  std::int64_t tick_ = 0;  // time: the present generation; count, while a list: keys written so far
};

}  // namespace sluice
