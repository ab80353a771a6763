// Joint: one search for all sizes of a group, after DietCode (Zheng et al., MLSys 2022).
//
// A micro-kernel is a setting of the card's knobs, and all sizes share its measurement:
//
//     speed(size, M) = f_MK(M) * f_PAD(size, M) * f_OCC(size, M)
//
// f_PAD is the share of computed elements that are asked for, f_OCC that of workers that have
// something to do. M is measured once, at the size that it is best for, and the result is divided
// by the two penalties, so that f_MK belongs to M alone. Here f_MK is measured, not learned, and
// rows are counted as the kernels compute them (lower/contraction/Contraction.cpp).
#ifndef HEDDLE_TUNER_JOINT_JOINT_H
#define HEDDLE_TUNER_JOINT_JOINT_H

#include "compiler/plan/Chooser.h"
#include "compiler/tuner/Searcher.h"

#include <random>

namespace heddle::tuner {

/// A group's work at one size.
struct Shape {
  double flops = 1, weight = 1;
  int64_t batches = 1, rows = 1, columns = 1; // the product's sizes
};

/// A size, and the knobs that rules have for it.
struct JointPoint {
  Shape shape;
  warehouse::KnobValues byDefault; // the default's in the program for all sizes
  warehouse::KnobValues alone;     // the default's in a program for this size alone
};

/// Share of a micro-kernel's time that goes into requested elements.
double penaltyOf(const Shape &shape, const warehouse::KnobValues &knobs, int64_t workers);

/// A micro-kernel, and the shape at which to measure it.
struct JointTrial {
  warehouse::KnobValues knobs;
  size_t shape;
};

class Joint : public Searcher<JointTrial> {
public:
  Joint(const warehouse::Card &card, std::vector<JointPoint> points,
        const program::Machine &machine, uint64_t seed);

  /// nullopt when nothing new is found.
  std::optional<JointTrial> next() override;
  /// Takes the seconds of a run; 0 for one that failed.
  void tell(const JointTrial &trial, double seconds) override;
  /// The shape that a micro-kernel is best for; of equal ones that with the most to compute.
  size_t bestShapeOf(const warehouse::KnobValues &knobs) const;

  /// The best for each shape of at most `most` micro-kernels: for the least k, those among each
  /// shape's k best that together cover all shapes.
  std::vector<warehouse::KnobValues> decide(size_t most) const;
  /// As decide, but the default's knobs if nothing is faster by the factor, or if the best is
  /// `base`, the knobs that the default has if no version is for the size.
  std::vector<warehouse::KnobValues> wanted(size_t most, const warehouse::KnobValues &base,
                                            double factor) const;
  /// Candidates for the best of one shape: `knobs`, the rule's for it alone, `knobs` with half as
  /// many rows, and others predicted to be next; `count` in all, without the default's.
  std::vector<warehouse::KnobValues> candidatesAt(size_t shape, const warehouse::KnobValues &knobs,
                                                  size_t count) const;
  /// These shapes in the order of their work.
  std::vector<size_t> heaviestFirst(std::vector<size_t> shapes) const;
  /// How many times faster than the default, predicted; the geometric mean of all shapes.
  double gainOf(llvm::ArrayRef<warehouse::KnobValues> knobs) const;
  /// Predicted, in floating point operations a second; 0 if it was not measured.
  double speedOf(size_t shape, const warehouse::KnobValues &knobs) const;

private:
  std::optional<JointTrial> first() const;
  bool isPossible(const warehouse::KnobValues &knobs) const;
  double bestSpeedOf(size_t shape) const;
  warehouse::KnobValues mutated(warehouse::KnobValues knobs);

  const warehouse::Card &card;
  std::vector<JointPoint> points;
  int64_t lanes, registers, workers;
  std::map<warehouse::KnobValues, double> speeds; // f_MK
  std::mt19937_64 draws;
};

} // namespace heddle::tuner

#endif // HEDDLE_TUNER_JOINT_JOINT_H
