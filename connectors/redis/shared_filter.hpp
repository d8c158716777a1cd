// A producer's view of a filter on servers, opened by its layout: the judge of its stream.
//
// It follows the layout: when a slice is missing, or is another one than before, or a server does
// not answer, the layout is read again, and what has moved is asked where it is now. It never writes
// to a slice of an old layout. A filter that was dropped, or made anew under its name, ends the
// stream with an error, before anything more is judged: keys would be looked for where they never
// were. A layout that the servers have lost is put back, unless somebody else has put one there.
//
// It is used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "connectors/redis/filter_site.hpp"
#include "connectors/redis/layout.hpp"
#include "sluice/cluster/filter_slices.hpp"
#include "sluice/cluster/patient_site.hpp"
#include "sluice/cluster/shared_judge.hpp"

namespace sluice::redis {

// There is no filter of this name: make it first.
class NoFilter : public ServersFailed {
 public:
  using ServersFailed::ServersFailed;
};

class SharedFilter final : private Whereabouts {
 public:
  // What becomes of a key whose server does not answer.
  enum class Unreachable : std::uint8_t {
    wait,       // it is asked until it does: nothing is lost, and nothing passes twice
    duplicate,  // it is held back: new ones are lost
    distinct,   // it is let through: repeats pass
  };
  struct Options {
    Unreachable when_unreachable = Unreachable::wait;
    // Of `wait`: waits a little, and says whether to go on. What is then unanswered is let through.
    std::function<bool(std::string_view problem)> again = [](std::string_view) { return false; };
    // What a person should know at once.
    std::function<void(const std::string& sentence)> notice = [](const std::string&) {};
  };

  // Reads the layout, and compares it with the slices. Throws NoFilter, ServersFailed,
  // cluster::CorruptLayout and BadParameters.
  SharedFilter(const Address& address, const Settings& settings, Options options);
  SharedFilter(const SharedFilter&) = delete;
  SharedFilter& operator=(const SharedFilter&) = delete;

  const cluster::Layout& layout() const noexcept { return layout_; }
  // Makes the judge; called once. `max_ahead`: as of Window::Params. The judge throws ServersFailed
  // when the filter is gone.
  cluster::SharedJudge& start(std::optional<std::uint64_t> max_ahead);

  struct Report {
    cluster::Traffic traffic;
    std::uint64_t ruled = 0;   // keys without an answer that is believed
    std::uint64_t unsure = 0;  // of a late answer: let through, perhaps repeats
    std::uint64_t bytes_sent = 0, bytes_received = 0;
    std::string problem;  // why a site did not answer last
  };
  Report report() const;

 private:
  const std::string& key(std::uint32_t site) const override { return keys_[site]; }
  std::string_view why(std::uint32_t site) const override;
  bool look_again() override;

  void open();
  void check_servers() const;
  void check_slices();
  bool check_slice(std::uint32_t site, const std::vector<Reply>& replies, Outcome outcome);
  void adopt(cluster::Layout layout);
  bool compare(const cluster::Layout& found);
  void end(std::string why);
  bool again(std::string_view problem);
  void observe(std::span<const Digest> digests, std::span<const std::int64_t> times_ms,
               std::span<Verdict> verdicts);

  Options options_;
  std::shared_ptr<Client> client_;
  LayoutStore store_;
  cluster::Layout layout_;
  std::vector<std::string> keys_;
  // Slices that were made anew since the filter was made, and when, in ms since 1970.
  std::vector<std::pair<std::uint32_t, std::int64_t>> made_anew_;
  cluster::Patience patience_;
  std::unique_ptr<cluster::FilterSlices> slices_;
  std::unique_ptr<cluster::SharedJudge> judge_;
  std::string unknown_;  // why the layout could not be read last
  std::string over_;     // why the stream must end
  bool waited_ = false;
};

}  // namespace sluice::redis
