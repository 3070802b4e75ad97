"""The k best of noisy scores, on the tape of a training step."""

from __future__ import annotations

from dataclasses import dataclass

from modgraph.tape import FLAG, Tape, Value


@dataclass(frozen=True)
class Choice:
    """Scores of so many pairs of a sender and a module, without and with noise."""

    tape: Tape
    senders: float
    pairs: float
    scores: Value
    noisy: Value

    def among(self) -> Value:
        """The noisy scores of the chosen, or of the others."""
        return self.tape.cleared(self.noisy, self.pairs)

    def extreme(self) -> Value:
        """The least of the chosen scores, or the largest of the others, for each sender."""
        among = self.among()
        return self.tape.make(self.senders, among, keeps=[among], keeps_result=True)

    def softmax_of_all(self) -> Value:
        return self.tape.make(self.pairs, self.tape.function(self.noisy, "result"), keeps_more=self.pairs * FLAG)

    def softmax_of_chosen(self) -> Value:
        return self.tape.function(self.among(), "result")

    def chance_to_stay(self, deviation: Value) -> Value:
        """The probability that a module stays among the chosen if its noise is drawn anew."""
        others = self.tape.make(self.pairs, self.extreme(), self.extreme(), keeps_more=self.pairs * FLAG)
        off = self.tape.add(self.pairs, self.scores, others)
        return self.normal_cdf(self.tape.quotient(self.pairs, off, deviation))

    def normal_cdf(self, x: Value) -> Value:
        scaled = self.tape.function(self.tape.function(x, "nothing"))
        return self.tape.function(self.tape.function(scaled, "nothing"), "nothing")
