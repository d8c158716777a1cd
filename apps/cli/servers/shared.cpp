// A filter on servers, opened for a stream.
#include "apps/cli/shared.hpp"

#include <fmt/format.h>

#include "apps/cli/command.hpp"
#include "connecting.hpp"
#include "connectors/redis/shared_filter.hpp"

namespace sluice::cli {
namespace {

using Unreachable = redis::SharedFilter::Unreachable;

Unreachable unreachable_of(const std::string& text) {
  if (text == "wait") return Unreachable::wait;
  if (text == "duplicate") return Unreachable::duplicate;
  if (text == "distinct") return Unreachable::distinct;
  throw BadParameters(
      fmt::format("--when-unreachable '{}' is not wait, duplicate or distinct", text));
}

// The judge's errors as those of the command.
class Judging final : public StreamJudge {
 public:
  explicit Judging(cluster::SharedJudge& judge) : judge_(judge) {}

  std::size_t judge(const Judge::Batch& batch) override {
    try {
      return judge_.judge(batch);
    } catch (const redis::ServersFailed& error) {
      throw RunFailed(error.what());
    }
  }
  const Hasher& hasher() const noexcept override { return judge_.hasher(); }
  bool asks_for_digests() const noexcept override { return judge_.asks_for_digests(); }
  std::optional<Pace> pace() const override { return judge_.pace(); }

 private:
  cluster::SharedJudge& judge_;
};

class OnServers final : public SharedFilter {
 public:
  explicit OnServers(const SharedFlags& flags)
      : flags_(flags),
        filter_(redis::parse_address(flags.url), settings_of(flags.password_file),
                {.when_unreachable = unreachable_of(flags.when_unreachable),
                 .again = [this](std::string_view problem) { return wait_.again(problem); },
                 .notice = [](const std::string& text) { warn("dedup", text); }}) {}

  const cluster::Layout& layout() const override { return filter_.layout(); }
  void attach(const StopSignals& signals) override { wait_.attach(signals); }

  StreamJudge& start(std::optional<std::uint64_t> max_ahead) override {
    judge_ = &filter_.start(max_ahead);
    return judging_.emplace(*judge_);
  }

  SharedReport report() const override {
    const redis::SharedFilter::Report report = filter_.report();
    return {.url = flags_.url,
            .rule = flags_.when_unreachable,
            .traffic = report.traffic,
            .ruled = report.ruled,
            .unsure = report.unsure,
            .bytes_sent = report.bytes_sent,
            .bytes_received = report.bytes_received,
            .disbelieved = judge_ == nullptr ? 0 : judge_->disbelieved(),
            .latest = judge_ == nullptr ? 0 : judge_->latest(),
            .problem = report.problem};
  }

 private:
  SharedFlags flags_;
  ServerWait wait_{"dedup"};
  redis::SharedFilter filter_;
  cluster::SharedJudge* judge_ = nullptr;
  std::optional<Judging> judging_;
};

}  // namespace

std::shared_ptr<SharedFilter> open_shared(const SharedFlags& flags) {
  try {
    return std::make_shared<OnServers>(flags);
  } catch (const redis::NoFilter& error) {
    throw RunFailed(fmt::format("{}: make it first, for instance with: {} --window 10m",
                                error.what(),
                                command_line("create", flags.url, flags.password_file)));
  } catch (const redis::ServersFailed& error) {
    throw RunFailed(error.what());
  } catch (const cluster::CorruptLayout& error) {
    throw RunFailed(error.what());
  }
}

}  // namespace sluice::cli
