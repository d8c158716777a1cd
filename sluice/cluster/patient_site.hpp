// A filter site that waits: what a site does not answer is asked again, until it is answered, or the
// caller says that it is enough. So nothing is judged by a rule only because a server was away.
//
// A request that was late may have been carried out: then its keys are remembered, and when they are
// asked for again, a key that came with it for the first time is a duplicate of itself. To hold it
// back would lose it, so it is let through, and counted as unsure: it may be a repeat.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "sluice/cluster/filter_site.hpp"

namespace sluice::cluster {

struct Patience {
  // Called when a site did not answer, or not for every key, with what it says of that. Waits, and
  // says whether to ask again.
  std::function<bool(std::string_view problem)> again;
  // Keys that were let through although they may be repeats.
  std::uint64_t unsure = 0;
};

class PatientSite final : public FilterSite {
 public:
  // `patience` is shared by a producer's sites, and must outlive them.
  PatientSite(std::unique_ptr<FilterSite> site, Patience& patience)
      : site_(std::move(site)), patience_(patience) {}

  void send(const Request& request) override;
  // If the caller has given up, keys without an answer have Answer::none, or none has one and the
  // outcome is the last one.
  Reply receive(std::span<Answer> answers) override;
  std::string_view problem() const noexcept override { return site_->problem(); }

 private:
  void send_open();
  bool take(const Reply& reply, std::span<const Answer> said, std::span<Answer> answers);
  void settle(std::span<Answer> answers);

  std::unique_ptr<FilterSite> site_;
  Patience& patience_;
  Request request_;
  std::vector<std::uint32_t> open_;  // keys without an answer
  std::vector<std::uint8_t> tried_;  // keys that a late request may have remembered
  bool any_tried_ = false;
  // Of the keys that are asked for again.
  std::vector<Digest> digests_;
  std::vector<std::int64_t> times_ms_;
  std::vector<Answer> said_;
};

}  // namespace sluice::cluster
