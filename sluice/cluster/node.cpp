#include "sluice/cluster/node.hpp"

#include <algorithm>
#include <utility>

#include "sluice/base/error.hpp"

namespace sluice::cluster {

LocalNode::LocalNode(std::shared_ptr<LocalFilter> filter)
    : filter_(std::move(filter)), window_(filter_->window()) {
  if (filter_->refreshed())
    throw BadParameters(
        "tree: a window that repeats refresh: a node near the producer holds repeats back, and "
        "those "
        "above would never hear of them; leave `refresh` out");
}

void LocalNode::ask(const Request& request, std::span<Answer> answers,
                    std::span<std::int64_t> since_ms) {
  std::ranges::fill(since_ms, kUnknownSince);
  Request asked = request;
  asked.wants_since = !since_ms.empty();
  if (!filter_->carry_out(asked, answers, since_ms).answered())
    std::ranges::fill(answers, Answer::none);
}

// Whether it has read every bit that it was asked for, and lacks none.
bool SlicesNode::sure() const {
  for (unsigned site = 0; site < slices_->map().sites(); ++site)
    if (!slices_->trusted(site)) return false;
  return true;
}

void SlicesNode::ask(const Request& request, std::span<Answer> answers,
                     std::span<std::int64_t> since_ms) {
  std::ranges::fill(since_ms, kUnknownSince);
  std::ranges::fill(answers, Answer::distinct);
  if (request.verb == FilterVerb::insert) return slices_->insert(request.digests);
  verdicts_.resize(request.digests.size());
  const std::uint64_t unanswered = slices_->traffic().unanswered;
  if (request.verb == FilterVerb::observe)
    slices_->observe(request.digests, verdicts_);
  else
    slices_->may_contain(request.digests, verdicts_);
  // What was remembered is judged: by its rule.
  const bool known = request.verb == FilterVerb::observe ||
                     (slices_->traffic().unanswered == unanswered && sure());
  for (std::size_t i = 0; i < answers.size(); ++i)
    answers[i] = verdicts_[i] == Verdict::duplicate ? Answer::duplicate
                 : known                            ? Answer::distinct
                                                    : Answer::none;
}

std::vector<std::unique_ptr<Node>> nodes_of(std::vector<std::unique_ptr<Slices>> slices) {
  std::vector<std::unique_ptr<Node>> nodes;
  for (auto& each : slices) nodes.push_back(std::make_unique<SlicesNode>(std::move(each)));
  return nodes;
}

}  // namespace sluice::cluster
