"""Why preset `paper`, on all rows, differs from the paper's figures: by strategy, shown where it does.

Updates were counted by benchmarks/updates.py; accuracies on held-out rows are lines of docs/tuning/table1.jsonl.
"""

REASONS = {
    "dvfl": "Our hosts replay in random order, which the paper leaves open; on held-out rows that is worth 0.6"
    " (docs/tuning.md).",
    "splitnn-wait": "The paper gives SGD 1e-2 with momentum 0.5 for the guests and nothing for the host, where we use"
    " the same. At that rate the network stays near chance in its first epochs and is short of its best after 60: on"
    " held-out rows, SGD at 0.1 for 100 epochs reaches 98.5.",
    "splitnn-skip": "Slow as splitnn-wait is, and only rounds in which all guests are heard teach it: 14 % at R_u 0.5"
    " and, at R_u 0.1, 163 (connection) and 155 (guest) of 50,640 in the whole training. So few updates cannot give the"
    " paper's 77 and 80 % at this rate; its faults were probably rarer than one draw a request. Adam at 4e-3 for 100"
    " epochs reaches 93 with them on held-out rows.",
    "splitnn-zeros": "Slow as splitnn-wait is, and at R_u 0.1 it makes 53 % of its updates with 1.3 of 4 guests on"
    " average; there, on held-out rows, SGD at 0.03 for 100 epochs reaches 93.1, at 0.1 97.6.",
    "splitnn-buffer": "What stands in is the guest's last batch, so its rows are not the labels'; a higher rate does"
    " not mend that (R_u 0.1 on held-out rows, 100 epochs: SGD at 0.1 80.5, at 0.3 73.6). If the paper keeps older"
    " encodings of the same rows instead, that is what vafl's table does here.",
    "fedonce-zeros": "The paper does not say how it trains FedOnce; our guests are DVFL's guests and its host is DVFL's"
    " owner, learning rates included.",
    "vafl": "The paper does not say how it trains VAFL. Ours updates the host at every guest's turn, four times a"
    " round, and so gets past the slow start that holds SplitNN back.",
    "vfb2": "The paper does not say how it trains VFB2; we use SplitNN's rates. Short faults act like dropout, and at"
    " R_u 0.1 it makes about half of its updates, as splitnn-zeros does.",
}
