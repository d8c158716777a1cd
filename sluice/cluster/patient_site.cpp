#include "sluice/cluster/patient_site.hpp"

#include <algorithm>
#include <unordered_set>

namespace sluice::cluster {
namespace {

struct HashDigest {
  std::size_t operator()(const Digest& digest) const noexcept { return digest.lo; }
};

}  // namespace

void PatientSite::send(const Request& request) {
  request_ = request;
  site_->send(request);
}

// Sends again what is open.
void PatientSite::send_open() {
  if (open_.size() == request_.digests.size()) return site_->send(request_);
  digests_.clear();
  times_ms_.clear();
  for (const std::uint32_t key : open_) {
    digests_.push_back(request_.digests[key]);
    if (!request_.times_ms.empty()) times_ms_.push_back(request_.times_ms[key]);
  }
  Request some = request_;
  some.digests = digests_;
  some.times_ms = times_ms_;
  site_->send(some);
}

// Whether all is answered.
bool PatientSite::take(const Reply& reply, std::span<const Answer> said,
                       std::span<Answer> answers) {
  if (!reply.answered()) {
    if (reply.outcome != Outcome::late) return false;
    for (const std::uint32_t key : open_) tried_[key] = 1;
    any_tried_ = true;
    return false;
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    answers[open_[i]] = said[i];
    if (said[i] == Answer::none) open_[kept++] = open_[i];
  }
  open_.resize(kept);
  return kept == 0;
}

// The first of a key may be a duplicate of itself.
void PatientSite::settle(std::span<Answer> answers) {
  if (!any_tried_ || request_.verb != FilterVerb::observe) return;
  std::unordered_set<Digest, HashDigest> before;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (!before.insert(request_.digests[i]).second) continue;
    if (tried_[i] == 0 || answers[i] != Answer::duplicate) continue;
    answers[i] = Answer::distinct;
    ++patience_.unsure;
  }
}

Reply PatientSite::receive(std::span<Answer> answers) {
  Reply reply = site_->receive(answers);
  const std::size_t size = request_.digests.size();
  if (reply.answered() && std::ranges::find(answers, Answer::none) == answers.end()) return reply;
  // So that what `answers` holds is never taken for an answer.
  said_.assign(answers.begin(), answers.end());
  std::ranges::fill(answers, Answer::none);
  open_.resize(size);
  for (std::size_t i = 0; i < size; ++i) open_[i] = static_cast<std::uint32_t>(i);
  tried_.assign(size, 0);
  any_tried_ = false;
  Reply last;  // that was answered
  bool done = false;
  for (;;) {
    done = take(reply, said_, answers);
    if (reply.answered()) last = reply;
    if (done || !patience_.again(site_->problem())) break;
    send_open();
    said_.assign(open_.size(), Answer::none);
    reply = site_->receive(said_);
  }
  settle(answers);
  return done || last.answered() ? last : reply;
}

}  // namespace sluice::cluster
