"""The files of the data sets that are not embedded: as prepared for this project, and as published."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dvfl.data.sets import conversion
from dvfl.data.sets.checksums import File
from dvfl.data.sets.conversion import Arrays, Files


@dataclass(frozen=True)
class Published:
    """A data set as its publisher gives it out."""

    files: tuple[File, ...]
    convert: Callable[[Files], Arrays]
    content: str | None = None  # sha256 of the arrays it must give, where something is computed on the way
    address: str | None = None  # each file is fetched from here and its name; None where none of them can be
    suffix: str = ""  # and this


@dataclass(frozen=True)
class Source:
    """Where a data set comes from."""

    page: str  # of its publisher
    prepared: File | None
    published: Published | None
    advice: str = ""  # how to get it where it cannot be fetched


_UCI = "https://archive.ics.uci.edu"

SOURCES: Mapping[str, Source] = {
    "mnist": Source(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        File("mnist.npz", "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64", 11_490_519),
        Published(
            (
                File(
                    "train-images-idx3-ubyte",
                    "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                    47_040_016,
                ),
                File(
                    "train-labels-idx1-ubyte",
                    "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                    60_008,
                ),
                File(
                    "t10k-images-idx3-ubyte",
                    "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                    7_840_016,
                ),
                File(
                    "t10k-labels-idx1-ubyte",
                    "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
                    10_008,
                ),
            ),
            conversion.images,
            address="https://ossci-datasets.s3.amazonaws.com/mnist/",
            suffix=".gz",
        ),
    ),
    "fashion_mnist": Source(
        "https://github.com/zalandoresearch/fashion-mnist",
        None,
        Published(
            (
                File(
                    "train-images-idx3-ubyte",
                    "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                    47_040_016,
                ),
                File(
                    "train-labels-idx1-ubyte",
                    "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                    60_008,
                ),
                File(
                    "t10k-images-idx3-ubyte",
                    "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                    7_840_016,
                ),
                File(
                    "t10k-labels-idx1-ubyte",
                    "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
                    10_008,
                ),
            ),
            conversion.images,
            address="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            suffix=".gz",
        ),
    ),
    "credit_card": Source(
        f"{_UCI}/dataset/350/default+of+credit+card+clients",
        File("credit_card.npz", "3ab898dd9261aa73cfc6717efc5072f879bdb84232d7af6f4f7c9d0f9d63ae49", 1_013_709),
        Published(
            (File("data.csv", "45bcf4df62ff2e237a74eb155cabfb4bbbc171219a0637daef44fdad07503dd0", 2_897_080),),
            conversion.credit_card,
            content="d714af24e5644bc78bf10a4bda5b37fbcd5df604b1d61102344c4ccc4087e8c1",
            address=f"{_UCI}/static/public/350/",
        ),
    ),
    "parkinsons": Source(
        f"{_UCI}/dataset/470/parkinson+s+disease+classification",
        File("parkinsons.npz", "98f303d07485c41521fe60aeb240320425a3a6d72f73a7319abe72b6c3dd3d27", 1_958_039),
        Published(
            (File("pd_speech_features.csv", "9495d1100beaa24005ea951d4b6588186091de4c21cc45009b027f38f699b8ab"),),
            conversion.parkinsons,
            content="438fa90d195d6807d2b04e16df741f7769be6168d9b245b9c2003e99b75f18d8",
        ),
        advice=f"download {_UCI}/static/public/470/parkinson+s+disease+classification.zip, unpack it and the archive in"
        " it (bsdtar -xf pd_speech_features.rar, or unar, or 7z x) and put pd_speech_features.csv in one of them",
    ),
    "handwritten": Source(
        f"{_UCI}/dataset/72/multiple+features",
        File("handwritten.npz", "15a86c81b2339126de97b39d389e7bb5fb44b47da93fba761f5ea65478ca78c4", 2_147_261),
        Published(
            (
                File("mfeat-pix", "70a1cd033add46614464a8740ddc23c3693765985bde52ccb6b702bff23b64f1", 1_442_000),
                File("mfeat-fou", "d2bed48a4d302efe77bd80d52e16a211e99efe6fee9baf1c28dcc199c43c50ad"),
                File("mfeat-fac", "83be9bc9fd50c6dd0b0532f6b6101956f1cf51c71b33f22d3f0cd2b5befb31b5", 2_162_000),
                File("mfeat-zer", "d4a0e302f2f61e823b906f78818c7c0ef078c0bbc23022affd6607d60ecfe4f3"),
                File("mfeat-kar", "db832668544497d0c06a2c1d1bfa0e17ba672812b7cfa6ed19f0941e19e1d7fa"),
                File("mfeat-mor", "8767b326d874f096de06d525a2df4e610f4e9dfe91e29c250d8a3054907e3b61"),
            ),
            conversion.handwritten,
            content="bf1b9a7f232a4f9e2092e94d43747a737ef325c09a4cb003a91c9c577068886f",
            address=f"{_UCI}/ml/machine-learning-databases/mfeat/",
        ),
    ),
    "caltech7": Source(
        "https://data.caltech.edu/records/mzrjq-6wc02",
        File(
            "caltech7_reextracted.npz", "8cbe4dca982033691079ff5cdc03dff29d4b7b487fd79531521ee754d8d68d67", 11_493_768
        ),
        None,
        advice="copy the prepared file there: its views were computed for this project from the images at"
        " https://data.caltech.edu/records/mzrjq-6wc02, and no public file converts to it",
    ),
}
