// How old a key is, given what a filter shows of it: the posteriors of Dautrich & Ravishankar 2013,
// and the same where only delivered events are inserted. Numbers in, numbers out.
//
// Ages are counted in ticks of the window's clock: arrivals where every arrival is inserted (the
// `refresh` anchor, which the theorems assume), deliveries where only those are.
//
// A prior is a weight for every age, what a filter shows is a likelihood for every age, and both
// are made of a few pieces: so sums over ages are sums of a few geometric series.
#pragma once

namespace sluice::model {

// The weight of age i before anything is asked: (1 − inside)^i below `hold`, from there on
// tail · (1 − outside)^(i − hold). `inside` and `outside` are the chances that a tick brings the
// key and writes it.
struct AgePrior {
  double inside = 0;
  double outside = 0;  // above 0
  double hold = 0;
  double tail = 1;
};

// Every arrival is inserted: P(i) = p (1 − p)^i (eq. 4).
AgePrior refreshed_age(double p);

// Only delivered events are inserted. From a delivery on a key is held back for `hold` ticks, then
// waits 1/p ticks on average for its next arrival. Of such a cycle of hold + 1/p ticks the age
// stands at every i < hold once: P(i) = p/(1 + hold·p), and P(in a window w ≤ hold) = wp/(1 +
// hold·p).
AgePrior renewal_age(double p, double hold);

// The same for a filter that forgets by blocks, `position` ticks after its last rotation: held are
// ages below generations·block + position, and of what was let go each block has waited as long as
// it was gone.
AgePrior renewal_age(double p, double generations, double block, double position);

// What a filter shows: the likelihood of age i, but for a factor. 0 below `from`, 1 below `to`,
// then `inside` below the prior's hold and `beyond` from there.
struct AgeEvidence {
  double from = 0;
  double to = 0;
  double inside = 0;
  double beyond = 0;
};

// P(age < ticks), E[age], and the age with the greatest probability (of several the least).
double posterior_within(const AgePrior& prior, const AgeEvidence& evidence, double ticks);
double posterior_mean(const AgePrior& prior, const AgeEvidence& evidence);
double posterior_mode(const AgePrior& prior, const AgeEvidence& evidence);

// Theorem 1: the key is in a classical filter into which `arrivals` keys were written, given that
// all its bits are set; `fpr` is the chance of that for a key never written. (With a bit unset: 0.)
double classic_posterior(double p, double arrivals, double fpr);

// F of eq. 21 in terms of `untouched`: the chance that `oldest` given timers of `cells` stay
// untouched and the others do not.
double timers_pattern(unsigned cells, unsigned oldest, double untouched);
// The chance that a timer stays untouched while `distinct` keys are written: (1 − 1/m)^(k·D).
double timer_untouched(double timers, unsigned probes, double distinct);

// A key's timers: the oldest are `age` blocks old; `touched` is the chance that timers as these are
// found so though the key is older, F(c, 0, B) with c oldest timers, or F(r, 0, b) where age is 0.
struct TimingSight {
  double window = 0;    // w
  double block = 0;     // B
  double position = 0;  // b: ticks since the last rotation
  unsigned age = 0;     // λ
  double touched = 0;
};
AgeEvidence timing_evidence(const TimingSight& sight);
// The oldest age that can be in the window: ⌈(w − b)/B⌉. A timer beyond it is expired.
unsigned timing_last_age(double window, double block, double position);
// Theorems 2 to 5: P(age < w), where every arrival is inserted.
double timing_posterior(double p, const TimingSight& sight);

}  // namespace sluice::model
