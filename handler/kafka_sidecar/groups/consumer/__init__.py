"""The consumer group protocol (KIP-848): members say what they want, the coordinator assigns.

members     what a group hears, says and keeps       machine     what happens when
assignors   who gets which partition                 reconcile   a member's next step towards it
owners      who has which partition now              migration   from a classic group, and back to one
"""
